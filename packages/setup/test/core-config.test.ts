// CoreConfig.xml of a release after our patch, read by a parser that is not ours: every rule holds,
// what is not ours is as it was, and a second patch changes nothing.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { coreConfigs } from '../../../test/core/fake-core-configs.ts';
import { attributesOf, elementsAt, parseXml, type XmlElement } from '../../../test/support/parsed-xml.ts';
import { patchCoreConfig, type WantedCoreConfig } from '../configuration/core-config.ts';
import { ConfigurationFault } from '../configuration/document.ts';
import { runs } from '../../../test/support/runs.ts';

const WANTED: WantedCoreConfig = {
  database: {
    url: 'jdbc:postgresql://tak-database:5432/cot',
    user: 'martiuser',
    password: 'core-password-1',
    connections: 200,
  },
  ldap: { url: 'ldap://authentik-ldap:3389', base: 'DC=core,DC=holdfast', password: 'b<i>nd&"\'$1' },
  organization: 'Fire District 7',
  unit: 'Rescue',
  signatureAlgorithm: 'SHA384withECDSA',
  bundlePassword: 'atakatak',
};
const patch = (text: string, fresh = false) => patchCoreConfig(text, WANTED, { fresh });
const example = readFileSync(join(import.meta.dirname, 'release/tak/CoreConfig.example.xml'), 'utf8');

/** Every rule of the stack. */
function expectRules(text: string): void {
  const { root } = parseXml(text);
  const at = (...path: string[]) => elementsAt(root, ...path);
  const one = (...path: string[]): Record<string, string> => {
    const found = at(...path);
    expect(`${path.join('/')}: ${found.length}`).toBe(`${path.join('/')}: 1`);
    return attributesOf(found[0]);
  };
  expect(one('auth')).toMatchObject({
    default: 'ldap',
    x509groups: 'true',
    x509addAnonymous: 'false',
    x509useGroupCache: 'true',
    x509checkRevocation: 'true',
  });
  expect(one('auth', 'ldap')).toMatchObject({
    url: 'ldap://authentik-ldap:3389',
    userstring: 'cn={username},ou=users,DC=core,DC=holdfast',
    style: 'DS',
    groupprefix: 'cn=core_',
    serviceAccountDN: 'cn=adm_ldapservice,ou=users,DC=core,DC=holdfast',
    serviceAccountCredential: WANTED.ldap.password,
    groupBaseRDN: 'ou=groups,DC=core,DC=holdfast',
    adminGroup: 'ROLE_ADMIN',
    x509groups: 'true',
    x509addAnonymous: 'false',
  });
  const children = at('auth').flatMap(({ elements }) => elements.map(({ name }) => name));
  expect(children.slice(0, 2)).toEqual(['ldap', 'File']);
  expect(children.slice(2).every((name) => name === 'oauth')).toBe(true);
  const { connectionPoolAutoSize, numDbConnections } = one('repository');
  expect(connectionPoolAutoSize).toBe('false');
  expect(Number(numDbConnections)).toBeGreaterThan(0);
  expect(Number(numDbConnections)).toBeLessThanOrEqual(WANTED.database.connections);
  expect(one('repository', 'connection')).toMatchObject({
    url: WANTED.database.url,
    username: 'martiuser',
    password: WANTED.database.password,
  });
  const inputs = at('network', 'input').map(attributesOf);
  expect(inputs.filter(({ port }) => port === '8089')).toEqual([
    expect.objectContaining({ protocol: 'tls', auth: 'x509', archive: 'true', coreVersion: '2' }),
  ]);
  const connectors = at('network', 'connector').map(attributesOf);
  expect(connectors[0]?.['port']).toBe('8443');
  for (const port of ['8443', '8446']) expect(connectors.filter((each) => each['port'] === port)).toHaveLength(1);
  expect(connectors.filter(({ tls }) => tls === 'false')).toEqual([]);
  expect(['false', 'want']).not.toContain(connectors[0]?.['clientAuth']);
  expect(connectors.find(({ port }) => port === '8446')?.['clientAuth']).toBe('false');
  expect(one('security', 'tls')).toMatchObject({
    keystore: 'PKCS12',
    keystoreFile: 'certs/files/takserver.p12',
    truststore: 'PKCS12',
    truststoreFile: 'certs/files/truststore-root.p12',
  });
  const lists = at('security', 'tls', 'crl').map((each) => attributesOf(each)['crlFile'] ?? '');
  // The listeners of the web look into the first one alone.
  expect(lists[0]).toMatch(/^(?:\/opt\/tak\/)?certs\/files\/ca\.crl$/);
  expect(one('certificateSigning')).toEqual({ CA: 'TAKServer' });
  const entries = at('certificateSigning', 'certificateConfig', 'nameEntries', 'nameEntry').map(attributesOf);
  expect(entries.toSorted((a, b) => (a['name'] ?? '').localeCompare(b['name'] ?? ''))).toEqual([
    { name: 'O', value: 'Fire District 7' },
    { name: 'OU', value: 'Rescue' },
  ]);
  const ca = one('certificateSigning', 'TAKServerCAConfig');
  expect(ca).toMatchObject({
    keystoreFile: 'certs/files/ca-signing.p12',
    signatureAlg: 'SHA384withECDSA',
    CAkey: '/opt/tak/certs/files/ca-do-not-share',
    CAcertificate: '/opt/tak/certs/files/ca',
  });
  expect(ca['validityDays'] ?? ca['validityHours']).toBeDefined();
  expect(one('vbm')['enabled']).toBe('false');
  expectSearchable(text);
}

/**
 * What the scripts of a release do: the first line with `<connection`, and the password of that
 * line.
 */
function expectSearchable(text: string): void {
  const line = text.split('\n').find((each) => each.includes('<connection ')) ?? '';
  expect(/password="([^"]*)"/.exec(line.slice(line.indexOf('<connection ')))?.[1]).toBe(WANTED.database.password);
}

const OURS = /^(?:network|auth|repository|security|certificateSigning|vbm)$/;

/** Of a file what no rule of the stack speaks of. */
function foreignIn(text: string) {
  const { root, comments, instructions, texts } = parseXml(text);
  const open = (each: XmlElement): boolean => {
    const { port = '', tls } = attributesOf(each);
    return each.name === 'input' ? port !== '8089' : !/^(?:8443|8446)$/.test(port) && tls !== 'false';
  };
  const network = root.elements.flatMap(({ name, elements }) => (name === 'network' ? elements : []));
  return {
    name: [root.name, root.uri],
    attributes: root.attributes,
    elements: root.elements.filter(({ name }) => !OURS.test(name)),
    network: network.filter(({ name }) => name === 'input' || name === 'connector').filter(open),
    others: [
      ...network.filter(({ name }) => name === 'announce'),
      ...elementsAt(root, 'auth', 'oauth'),
      ...elementsAt(root, 'security', 'missionTls'),
      ...elementsAt(root, 'certificateSigning', 'MicrosoftCAConfig'),
    ],
    kept: [
      ...pick(elementsAt(root, 'network'), 'multicastTTL', 'serverId', 'version', 'takServerHost'),
      ...pick(elementsAt(root, 'auth'), 'x509tokenAuth', 'DNUsernameExtractorRegex'),
      ...pick(elementsAt(root, 'auth', 'ldap').slice(0, 1), 'nameAttr', 'callsignAttribute'),
      ...pick(elementsAt(root, 'repository'), 'insertionBatchSize', 'archive').filter(isSet),
      ...pick(elementsAt(root, 'repository', 'connection').slice(0, 1), 'sslEnabled'),
      ...pick(elementsAt(root, 'security', 'tls'), 'ciphers'),
      ...pick(elementsAt(root, 'vbm'), 'disableSASharing'),
    ].filter(isSet),
    comments: comments.map((each) => each.replaceAll('< connection', '<connection')),
    instructions,
    texts: texts.filter((each) => each !== 'one' && each !== 'two'),
  };
}

const isSet = ([, value]: [string, string | undefined]): boolean => value !== undefined;

function pick(elements: readonly XmlElement[], ...names: string[]): [string, string | undefined][] {
  return elements.flatMap((each) =>
    names.map((name): [string, string | undefined] => [name, attributesOf(each)[name]]),
  );
}

describe('the connection pool', () => {
  const pool = (attributes: string): unknown => {
    const { text } = patch(example.replace(/<repository [^>]*>/, `<repository enable="true" ${attributes}>`));
    return attributesOf(elementsAt(parseXml(text).root, 'repository')[0]);
  };

  it.each([
    ['that sizes itself gets the number that the database allows', 'numDbConnections="16"', '200'],
    ['that is said to size itself, too', 'connectionPoolAutoSize="true" numDbConnections="64"', '200'],
    ['of a chosen size stays', 'connectionPoolAutoSize="false" numDbConnections="64"', '64'],
    ['that is larger than the database allows is cut', 'connectionPoolAutoSize="false" numDbConnections="900"', '200'],
    ['of no size gets one', 'connectionPoolAutoSize="false"', '200'],
  ])('%s', (_, attributes, numDbConnections) =>
    expect(pool(attributes)).toMatchObject({ connectionPoolAutoSize: 'false', numDbConnections }),
  );
});

describe('CoreConfig.xml of any shape', { timeout: 60_000 }, () => {
  it('obeys every rule afterwards, and keeps what is not ours', () => {
    fc.assert(
      fc.property(coreConfigs, (text) => {
        const patched = patch(text).text;
        expectRules(patched);
        expect(foreignIn(patched)).toEqual(foreignIn(text));
      }),
      { numRuns: runs(200) },
    );
  });

  it('is not changed by a second patch, not in a byte', () => {
    fc.assert(
      fc.property(coreConfigs, fc.boolean(), (text, fresh) => {
        const once = patch(text, fresh).text;
        expect(patch(once)).toEqual({ text: once, messages: [] });
      }),
      { numRuns: runs(200) },
    );
  });

  it('keeps its byte order mark, its line ends, and all before and behind its root', () => {
    fc.assert(
      fc.property(coreConfigs, (text) => {
        const patched = patch(text).text;
        const before = (whole: string): string =>
          whole.slice(0, whole.search(/<(?:c:)?Configuration/)).replaceAll('< connection', '<connection');
        expect(before(patched)).toBe(before(text));
        expect(patched.startsWith('\uFEFF')).toBe(text.startsWith('\uFEFF'));
        expect(/[^\r]\n/.test(patched)).toBe(/[^\r]\n/.test(text));
      }),
      { numRuns: runs(200) },
    );
  });

  it('tells no secret in what it says', () => {
    fc.assert(
      fc.property(coreConfigs, (text) => {
        const { messages } = patch(text.replaceAll(/(password|keystorePass)=(["'])[^"']*\2/g, '$1=$2verysecret$2'));
        for (const secret of ['verysecret', WANTED.database.password, WANTED.ldap.password])
          expect(messages.join('\n')).not.toContain(secret);
      }),
      { numRuns: runs(200) },
    );
  });
});

describe('the example of a release', () => {
  it('loses the listeners that nobody has chosen, and says nothing of it', () => {
    const { text, messages } = patch(example, true);
    const { root } = parseXml(text);
    expectRules(text);
    expect(elementsAt(root, 'network', 'connector').map((each) => attributesOf(each)['port'])).toEqual([
      '8443',
      '8446',
    ]);
    expect(elementsAt(root, 'network', 'input')).toHaveLength(1);
    expect(messages).toEqual([]);
  });

  it("keeps those of an operator's own file", () => {
    const own = example.replace(
      '<connector port="8443"',
      '<input _name="mesh" protocol="udp" port="6969"/><connector port="8443"',
    );
    const { root } = parseXml(patch(own).text);
    expect(elementsAt(root, 'network', 'input').map((each) => attributesOf(each)['port'])).toEqual(['8089', '6969']);
    expect(elementsAt(root, 'network', 'connector').map((each) => attributesOf(each)['port'])).toEqual([
      '8443',
      '8444',
      '8446',
    ]);
  });

  it('keeps the order that its schema asks for: a filter, inputs, feeds, connectors, the announcement', () => {
    const own = example
      .replace(/<input _name="stdssl"[^>]*>/, '<filter/><datafeed _name="f" protocol="tls" port="8090"/>')
      .replaceAll(/<connector [^>]*>/g, '')
      .replace('</network>', '<announce enable="false"/></network>');
    const { root } = parseXml(patch(own).text);
    expect(elementsAt(root, 'network').flatMap(({ elements }) => elements.map(({ name }) => name))).toEqual([
      'filter',
      'input',
      'datafeed',
      'connector',
      'connector',
      'announce',
    ]);
  });

  it('gives no two inputs the same name, with which the core would not start', () => {
    const own = example.replace('port="8089"', 'port="8090"');
    const { root } = parseXml(patch(own).text);
    expect(elementsAt(root, 'network', 'input').map((each) => attributesOf(each)['_name'])).toEqual([
      'stdssl8089',
      'stdssl',
    ]);
  });

  it('gets a group name that is cut out of the whole name of a group, however its attribute is written', () => {
    const { root } = parseXml(patch(example, true).text);
    const pattern = attributesOf(elementsAt(root, 'auth', 'ldap')[0])['groupNameExtractorRegex'] ?? '';
    for (const name of ['cn=core_Alpha Team,ou=groups,DC=core', 'CN=core_Alpha Team'])
      expect(new RegExp(pattern).exec(name)?.[1]).toBe('Alpha Team');
  });
});

describe('what somebody had set otherwise', () => {
  it('is named with both values, of a secret only that there was another', () => {
    const text = patch(example, true)
      .text.replace('groupprefix="cn=core_"', 'groupprefix="tak_"')
      .replace('password="core-password-1"', 'password="old-secret-9"')
      .replace('clientAuth="false"', 'clientAuth="true"');
    const { messages } = patch(text);
    expect(messages).toEqual([
      'network/connector 8446 clientAuth is now "false", was "true"',
      'auth/ldap groupprefix is now "cn=core_", was "tak_"',
      'repository/connection password was replaced',
    ]);
  });

  it('what the core adds when it rewrites the file stays', () => {
    const text = patch(example, true)
      .text.replace('<network ', '<network serverId="a1b2" version="5.7-RELEASE-8" ')
      .replace('<vbm ', '<profile useStreamingGroup="true"/>\n    <vbm ');
    expect(patch(text)).toEqual({ text, messages: [] });
  });
});

describe('a file that cannot be used', () => {
  it.each([
    [
      'a document type',
      '<!DOCTYPE x [<!ENTITY e "y">]>\n<Configuration xmlns="http://bbn.com/marti/xml/config"/>',
      /DOCTYPE/,
    ],
    ['another root', '<Other xmlns="http://bbn.com/marti/xml/config"/>', /its root must be Configuration/],
    ['another namespace', '<Configuration/>', /its root must be Configuration of the namespace/],
    [
      'an open tag',
      '<Configuration xmlns="http://bbn.com/marti/xml/config">\n<auth>\n</Configuration>',
      /line 2: Opening and ending tag mismatch/,
    ],
    ['nothing', '', /./],
    [
      'an attribute without quotes',
      '<Configuration xmlns="http://bbn.com/marti/xml/config"><auth a=b/></Configuration>',
      /./,
    ],
  ])('is refused: %s', (_, text, words) => {
    expect(() => patch(text)).toThrow(ConfigurationFault);
    expect(() => patch(text)).toThrow(words);
  });
});
