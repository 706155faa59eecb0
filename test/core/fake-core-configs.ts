// CoreConfig.xml files of the public shape at random: as a release ships them, as a core rewrites them, as people edit them.

import fc from 'fast-check';

const NAMESPACE = 'http://bbn.com/marti/xml/config';

type Attributes = [string, string][];

interface Node {
  name: string;
  attributes: Attributes;
  children: (Node | string)[];
}

const node = (name: string, attributes: Attributes = [], children: (Node | string)[] = []): Node => ({
  name,
  attributes,
  children,
});

const value = fc.oneof(
  fc.constantFrom('true', 'false', 'x', '', 'a &amp; b', '&lt;x&gt;', 'Höhle', '&#x9;', 'OU=People, DC=x'),
  fc.stringMatching(/^[A-Za-z0-9 ._:/-]{0,12}$/),
);
const some = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined });
const comment = fc
  .constantFrom(
    ' note ',
    ' <connection url="old" username="x" password="leaked"/> ',
    '<ldap\n url="ldap://x"/>',
    ' </Configuration> ',
    ' <input _name="p" port="8087"/> ',
    ' > ',
  )
  .map((text) => `<!--${text}-->`);
const comments = fc.array(comment, { maxLength: 2 });

const attributes = (...names: string[]): fc.Arbitrary<Attributes> =>
  fc.subarray(names).chain((chosen) => fc.tuple(...chosen.map((name) => fc.tuple(fc.constant(name), value))));

const network = fc
  .record({
    own: attributes('multicastTTL', 'serverId', 'version', 'takServerHost'),
    inputs: fc.array(
      fc.record({
        port: fc.constantFrom('8089', '8087', '8088', '9000'),
        rest: attributes('_name', 'protocol', 'auth', 'archive', 'coreVersion', 'anongroup'),
      }),
      { maxLength: 4 },
    ),
    connectors: fc.array(
      fc.record({
        port: fc.constantFrom('8443', '8446', '8444', '8080'),
        rest: attributes('_name', 'clientAuth', 'enableAdminUI', 'crlFile'),
        tls: some(fc.constantFrom('true', 'false')),
      }),
      { maxLength: 5 },
    ),
    announce: some(attributes('enable', 'uid')),
    comments,
  })
  .map(({ own, inputs, connectors, announce, comments: notes }) =>
    node('network', own, [
      ...inputs.map(({ port, rest }) =>
        node('input', [...rest, ['port', port]], [node('filtergroup', [], ['one'])].slice(port.length % 2)),
      ),
      ...notes,
      ...connectors.map(({ port, rest, tls }) =>
        node('connector', [['port', port], ...rest, ...(tls === undefined ? [] : [['tls', tls] as [string, string]])]),
      ),
      ...(announce === undefined ? [] : [node('announce', announce)]),
    ]),
  );

const auth = fc
  .record({
    own: attributes('default', 'x509groups', 'x509checkRevocation', 'x509tokenAuth', 'DNUsernameExtractorRegex'),
    ldap: fc.array(attributes('url', 'style', 'groupprefix', 'nameAttr', 'callsignAttribute', 'x509addAnonymous'), {
      maxLength: 2,
    }),
    file: some(attributes('location')),
    oauth: some(attributes('oauthUseGroupCache')),
    order: fc.constantFrom(0, 1, 2),
    comments,
  })
  .map(({ own, ldap, file, oauth, order, comments: notes }) => {
    const parts = [
      ...ldap.map((each) => node('ldap', each, [node('filtergroup', [], ['two'])])),
      ...(file === undefined ? [] : [node('File', file)]),
      ...(oauth === undefined ? [] : [node('oauth', oauth)]),
    ];
    const turned = [...parts.slice(order), ...parts.slice(0, order)];
    return node('auth', own, [...notes, ...turned]);
  });

const repository = fc
  .record({
    own: attributes('enable', 'numDbConnections', 'insertionBatchSize', 'archive'),
    connections: fc.array(attributes('url', 'username', 'password', 'sslEnabled'), { maxLength: 3 }),
    comments,
  })
  .map(({ own, connections, comments: notes }) =>
    node('repository', own, [...notes, ...connections.map((each) => node('connection', each))]),
  );

const security = fc
  .record({
    tls: some(attributes('context', 'keymanager', 'keystore', 'keystoreFile', 'keystorePass', 'ciphers')),
    lists: fc.array(
      fc
        .constantFrom('certs/files/ca.crl', '/opt/tak/certs/files/ca.crl', 'certs/files/other.crl')
        .map((file) => node('crl', [['crlFile', file]])),
      { maxLength: 2 },
    ),
    mission: some(attributes('keystore')),
    comments,
  })
  .map(({ tls, lists, mission, comments: notes }) =>
    node(
      'security',
      [],
      [
        ...(tls === undefined ? [] : [node('tls', tls, [...notes, ...lists])]),
        ...(mission === undefined ? [] : [node('missionTls', mission)]),
      ],
    ),
  );

const signing = fc
  .record({
    entries: fc.array(
      fc
        .record({ name: fc.constantFrom('O', 'OU', 'C'), value })
        .map((each) => node('nameEntry', Object.entries(each))),
      { maxLength: 4 },
    ),
    ca: some(attributes('keystore', 'keystoreFile', 'validityDays', 'signatureAlg')),
    microsoft: some(attributes('username')),
  })
  .map(({ entries, ca, microsoft }) =>
    node(
      'certificateSigning',
      [['CA', 'MicrosoftCA']],
      [
        node('certificateConfig', [], [node('nameEntries', [], entries)]),
        ...(ca === undefined ? [] : [node('TAKServerCAConfig', ca)]),
        ...(microsoft === undefined ? [] : [node('MicrosoftCAConfig', microsoft)]),
      ],
    ),
  );

const foreign = fc.constantFrom(
  node('submission', [['ignoreStaleMessages', 'false']]),
  node('filter', [], [node('flowtag', [['enable', 'true']]), '<!-- kept -->', '<![CDATA[a < b & <connect ]]>']),
  node(
    'federation',
    [['id', 'x']],
    [node('federation-server', [['port', '9000']], [node('tls', [['keystore', 'JKS']])])],
  ),
  node('plugins', [], ['text &amp; more']),
);

/** The text of such a file, with its traits at random. */
export const coreConfigs: fc.Arbitrary<string> = fc
  .record({
    sections: fc.tuple(some(network), some(auth), some(repository), some(security), some(signing)),
    foreign: fc.array(foreign, { maxLength: 3 }),
    vbm: some(attributes('enabled', 'disableSASharing')),
    turn: fc.nat(8),
    prefix: fc.constantFrom('', '', '', 'c'),
    mark: fc.boolean(),
    declaration: fc.constantFrom(
      '<?xml version="1.0" encoding="UTF-8"?>\n',
      '<?xml version="1.0" standalone="yes"?>',
      '',
    ),
    before: comments,
    after: comments,
    lineEnd: fc.constantFrom('\n', '\r\n'),
    layout: fc.constantFrom<Layout>('lines', 'one line', 'attributes on lines'),
    quote: fc.constantFrom('"', "'"),
  })
  .map((config) => {
    const vbm = config.vbm === undefined ? [] : [node('vbm', config.vbm)];
    const parts = [...config.sections.filter((each) => each !== undefined), ...config.foreign, ...vbm];
    const turned = [...parts.slice(config.turn), ...parts.slice(0, config.turn)];
    const declared: Attributes = [
      [config.prefix === '' ? 'xmlns' : `xmlns:${config.prefix}`, NAMESPACE],
      ['forceLowConcurrency', 'false'],
    ];
    const root = written(node('Configuration', declared, turned), config, 0);
    const around = (notes: string[]): string => notes.map((each) => `${each}\n`).join('');
    const text = `${config.declaration}${around(config.before)}${root}\n${around(config.after)}`;
    return (config.mark ? '\uFEFF' : '') + text.replaceAll('\n', config.lineEnd);
  });

type Layout = 'lines' | 'one line' | 'attributes on lines';

function written(
  { name, attributes: own, children }: Node,
  style: { prefix: string; layout: Layout; quote: string },
  depth: number,
): string {
  const { layout, quote } = style;
  const tag = style.prefix === '' ? name : `${style.prefix}:${name}`;
  const gap = layout === 'attributes on lines' ? `\n${'  '.repeat(depth + 2)}` : ' ';
  const head = `<${tag}${own.map(([key, text]) => `${gap}${key}=${quote}${text}${quote}`).join('')}`;
  if (children.length === 0) return `${head}/>`;
  const line = layout === 'one line' ? '' : `\n${'  '.repeat(depth + 1)}`;
  const inner = children.map((each) => line + (typeof each === 'string' ? each : written(each, style, depth + 1)));
  return `${head}>${inner.join('')}${layout === 'one line' ? '' : `\n${'  '.repeat(depth)}`}</${tag}>`;
}
