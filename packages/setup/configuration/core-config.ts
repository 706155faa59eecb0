// Patches CoreConfig.xml for the stack: database, directory, listeners, certificates, signing and
// revocation. Keeps everything else, which belongs to the operator or the core.

import type { Element, Node } from '@xmldom/xmldom';
import { LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/directory';
import { ADMIN_ROLE_GROUP, CHANNEL_PREFIX } from '@holdfast/kit/names';
import {
  childrenOf,
  CONFIGURATION_NAMESPACE,
  type ConfigurationDocument,
  ensureChild,
  insertChild,
  place,
  readConfiguration,
  removeChild,
  setAttributes,
} from './document.ts';

export interface WantedCoreConfig {
  /** `connections`: limit of each core process. */
  database: { url: string; user: string; password: string; connections: number };
  ldap: { url: string; base: string; password: string };
  /** O and OU of the certificates of devices. */
  organization: string;
  unit: string;
  /** Java name of the algorithm of the CA's own certificate, which the core signs with. */
  signatureAlgorithm: string;
  bundlePassword: string;
}

/** Paths of the PKCS#12 files and the revocation list, relative to the core's directory. */
const FILES = {
  server: 'certs/files/takserver.p12',
  truststore: 'certs/files/truststore-root.p12',
  signing: 'certs/files/ca-signing.p12',
  revocationList: 'certs/files/ca.crl',
  /** Absolute and without extension, for scripts that run in other directories. */
  caKey: '/opt/tak/certs/files/ca-do-not-share',
  ca: '/opt/tak/certs/files/ca',
} as const;
const STREAMING_PORT = '8089';
const STREAMING_NAME = 'stdssl';
const ADMIN_PORT = '8443';
const ENROLLMENT_PORT = '8446';
const VALIDITY_DAYS = '365';
/** Prefix of authentik's groups. The core compares it with the whole DN in lower case. */
const GROUP_PREFIX = `cn=${CHANNEL_PREFIX}`;
const CONNECTION = /<connection(?=[\s/>])/g;
const GROUP_NAME = `[Cc][Nn]=${CHANNEL_PREFIX}(.*?)(?:,|$)`;

/**
 * Returns the patched text and the values that were replaced. `fresh`: the text is the example of a
 * release, so its listeners needn't be kept. Throws a ConfigurationFault.
 */
export function patchCoreConfig(
  text: string,
  wanted: WantedCoreConfig,
  { fresh }: { fresh: boolean },
): { text: string; messages: string[] } {
  const document = readConfiguration(text, 'Configuration');
  const { root } = document;
  patchNetwork(document, ensureChild(document, root, 'network', firstElement(root)), fresh);
  patchAuth(document, ensureChild(document, root, 'auth'), wanted);
  patchRepository(document, ensureChild(document, root, 'repository'), wanted);
  patchSecurity(document, ensureChild(document, root, 'security'), wanted);
  patchSigning(document, ensureChild(document, root, 'certificateSigning'), wanted);
  setAttributes(document, ensureChild(document, root, 'vbm'), { enabled: 'false' });
  return { text: connectionOnOneLine(document), messages: fresh ? [] : document.messages };
}

function patchNetwork(document: ConfigurationDocument, network: Element, fresh: boolean): void {
  const inputs = childrenOf(network, 'input');
  const [filter] = childrenOf(network, 'filter');
  const input =
    inputs.find((each) => each.getAttribute('port') === STREAMING_PORT) ??
    insertChild(document, network, 'input', firstElement(network, filter));
  const isNameTaken = inputs.some((each) => each !== input && each.getAttribute('_name') === STREAMING_NAME);
  setAttributes(document, input, {
    // The core doesn't start with two inputs of the same name.
    ...(input.getAttribute('_name') === null
      ? { _name: isNameTaken ? STREAMING_NAME + STREAMING_PORT : STREAMING_NAME }
      : {}),
    protocol: 'tls',
    port: STREAMING_PORT,
    auth: 'x509',
    archive: 'true',
    coreVersion: '2',
  });
  for (const other of inputs)
    if (other !== input && (fresh || other.getAttribute('port') === STREAMING_PORT))
      drop(document, other, `removed the input ${other.getAttribute('_name') ?? ''}`);
  patchConnectors(document, network, fresh);
}

function patchConnectors(document: ConfigurationDocument, network: Element, fresh: boolean): void {
  const announce = childrenOf(network, 'announce')[0] ?? null;
  const connectorOf = (port: string): Element => {
    const found = childrenOf(network, 'connector').find((each) => each.getAttribute('port') === port);
    if (found !== undefined) return found;
    const made = insertChild(document, network, 'connector', announce);
    setAttributes(document, made, { port, _name: port === ADMIN_PORT ? 'https' : 'cert_https' });
    return made;
  };
  const admin = connectorOf(ADMIN_PORT);
  const enrollment = connectorOf(ENROLLMENT_PORT);
  for (const each of childrenOf(network, 'connector')) {
    const port = each.getAttribute('port') ?? '';
    const isDouble = each !== admin && each !== enrollment && (port === ADMIN_PORT || port === ENROLLMENT_PORT);
    const isPlain = each.getAttribute('tls') === 'false' && each !== admin && each !== enrollment;
    if (isDouble || isPlain || (fresh && each !== admin && each !== enrollment))
      drop(document, each, `removed the connector ${port}${isPlain ? ', which had no TLS' : ''}`);
  }
  for (const each of [admin, enrollment])
    if (each.getAttribute('tls') === 'false') setAttributes(document, each, { tls: 'true' });
  // Keeps a stricter choice. `false` would allow connections without a certificate.
  if (['false', 'want'].includes(admin.getAttribute('clientAuth') ?? ''))
    setAttributes(document, admin, { clientAuth: 'true' });
  setAttributes(document, admin, { crlFile: FILES.revocationList });
  setAttributes(document, enrollment, { clientAuth: 'false' });
  const [first] = childrenOf(network, 'connector');
  if (first !== undefined && first !== admin) moveBefore(document, admin, first);
}

function patchAuth(document: ConfigurationDocument, auth: Element, { ldap }: WantedCoreConfig): void {
  setAttributes(document, auth, {
    default: 'ldap',
    x509groups: 'true',
    x509addAnonymous: 'false',
    x509useGroupCache: 'true',
    x509useGroupCacheDefaultActive: 'true',
    x509useGroupCacheDefaultUpdatesActive: 'true',
    x509checkRevocation: 'true',
  });
  const directory = onlyChild(document, auth, 'ldap', firstElement(auth));
  setAttributes(
    document,
    directory,
    {
      url: ldap.url,
      userstring: `cn={username},ou=users,${ldap.base}`,
      updateinterval: '60',
      style: 'DS',
      ldapSecurityType: 'simple',
      groupprefix: GROUP_PREFIX,
      groupNameExtractorRegex: GROUP_NAME,
      serviceAccountDN: `cn=${LDAP_SERVICE_ACCOUNT},ou=users,${ldap.base}`,
      serviceAccountCredential: ldap.password,
      groupObjectClass: 'group',
      userObjectClass: 'user',
      groupBaseRDN: `ou=groups,${ldap.base}`,
      userBaseRDN: `ou=users,${ldap.base}`,
      adminGroup: ADMIN_ROLE_GROUP.slice(CHANNEL_PREFIX.length),
      x509groups: 'true',
      x509addAnonymous: 'false',
      readGroupSuffix: '_READ',
      writeGroupSuffix: '_WRITE',
    },
    ['serviceAccountCredential'],
  );
  const file = onlyChild(document, auth, 'File', childrenOf(auth, 'oauth')[0] ?? null);
  setAttributes(document, file, { location: 'UserAuthenticationFile.xml' });
  const [oauth] = childrenOf(auth, 'oauth');
  if (isBehind(directory, file)) moveBefore(document, directory, file);
  if (oauth !== undefined && isBehind(file, oauth)) moveBefore(document, file, oauth);
  if (oauth !== undefined && isBehind(directory, oauth)) moveBefore(document, directory, file);
}

function patchRepository(document: ConfigurationDocument, repository: Element, { database }: WantedCoreConfig): void {
  setAttributes(document, repository, { enable: 'true', ...poolOf(repository, database.connections) });
  let connection = onlyChild(document, repository, 'connection', firstElement(repository));
  if (connection.prefix !== null) connection = withoutPrefix(document, repository, connection);
  const values = { url: database.url, username: database.user, password: database.password };
  setAttributes(document, connection, values, ['password']);
}

/**
 * An auto-sized pool asks the database once, when the core starts. If the database is unavailable
 * then, it gets one connection, and the core never finishes starting. Keeps a number that the
 * operator chose, up to `connections`.
 */
function poolOf(repository: Element, connections: number): Record<string, string> {
  const isChosen = repository.getAttribute('connectionPoolAutoSize') === 'false';
  const chosen = Number(repository.getAttribute('numDbConnections') ?? Number.NaN);
  const keeps = isChosen && Number.isInteger(chosen) && chosen > 0 && chosen <= connections;
  return { connectionPoolAutoSize: 'false', numDbConnections: String(keeps ? chosen : connections) };
}

function patchSecurity(document: ConfigurationDocument, security: Element, wanted: WantedCoreConfig): void {
  const tls = ensureChild(document, security, 'tls', firstElement(security));
  setAttributes(
    document,
    tls,
    {
      ...(tls.getAttribute('context') === null ? { context: 'TLSv1.2' } : {}),
      ...(tls.getAttribute('keymanager') === null ? { keymanager: 'SunX509' } : {}),
      keystore: 'PKCS12',
      keystoreFile: FILES.server,
      keystorePass: wanted.bundlePassword,
      truststore: 'PKCS12',
      truststoreFile: FILES.truststore,
      truststorePass: wanted.bundlePassword,
    },
    ['keystorePass', 'truststorePass'],
  );
  const lists = childrenOf(tls, 'crl');
  const isOurs = (crl: Element): boolean =>
    (crl.getAttribute('crlFile') ?? '').replace(/^\/opt\/tak\//, '') === FILES.revocationList;
  const list = lists.find(isOurs) ?? insertChild(document, tls, 'crl', firstElement(tls));
  const isUnnamed = list.getAttribute('_name') === null;
  setAttributes(document, list, {
    ...(isUnnamed ? { _name: 'TAKServer CA' } : {}),
    ...(isOurs(list) ? {} : { crlFile: FILES.revocationList }),
  });
  // The core uses only the first list for its first web listener, the one for administrators.
  const [first] = childrenOf(tls, 'crl');
  if (first !== undefined && first !== list) moveBefore(document, list, first);
}

function patchSigning(document: ConfigurationDocument, signing: Element, wanted: WantedCoreConfig): void {
  setAttributes(document, signing, { CA: 'TAKServer' });
  const config = onlyChild(document, signing, 'certificateConfig', firstElement(signing));
  const entries = onlyChild(document, config, 'nameEntries', firstElement(config));
  const names = { O: wanted.organization, OU: wanted.unit };
  for (const entry of childrenOf(entries, 'nameEntry')) {
    const name = entry.getAttribute('name') ?? '';
    const isFirst = childrenOf(entries, 'nameEntry').find((each) => each.getAttribute('name') === name) === entry;
    if (!Object.hasOwn(names, name) || !isFirst)
      drop(document, entry, `removed the name entry ${name}: the core uses only O and OU`);
  }
  for (const [name, value] of Object.entries(names)) {
    const found = childrenOf(entries, 'nameEntry').find((each) => each.getAttribute('name') === name);
    setAttributes(document, found ?? insertChild(document, entries, 'nameEntry'), { name, value });
  }
  const ca = onlyChild(document, signing, 'TAKServerCAConfig', childrenOf(signing, 'MicrosoftCAConfig')[0] ?? null);
  const hasValidity = ['validityDays', 'validityHours'].some((name) => ca.getAttribute(name) !== null);
  setAttributes(
    document,
    ca,
    {
      keystore: 'PKCS12',
      keystoreFile: FILES.signing,
      keystorePass: wanted.bundlePassword,
      ...(hasValidity ? {} : { validityDays: VALIDITY_DAYS }),
      signatureAlg: wanted.signatureAlgorithm,
      CAkey: FILES.caKey,
      CAcertificate: FILES.ca,
    },
    ['keystorePass'],
  );
}

/** Keeps only the first child of this name: it isn't documented which one the core uses. */
function onlyChild(document: ConfigurationDocument, parent: Element, name: string, before: Node | null): Element {
  const [first, ...others] = childrenOf(parent, name);
  for (const each of others) drop(document, each, `removed a duplicate ${name} and kept the first`);
  return first ?? insertChild(document, parent, name, before);
}

function drop(document: ConfigurationDocument, element: Element, words: string): void {
  removeChild(document, element);
  document.messages.push(words);
}

/** The first element that isn't `other`. */
function firstElement(parent: Element, other?: Element): Node | null {
  const isElement = (node: Node): boolean => node.nodeType === node.ELEMENT_NODE && node !== other;
  return Array.from(parent.childNodes).find(isElement) ?? null;
}

function isBehind(element: Element, other: Element): boolean {
  const siblings = Array.from(element.parentNode?.childNodes ?? []);
  return siblings.indexOf(element) > siblings.indexOf(other);
}

function moveBefore(document: ConfigurationDocument, element: Element, other: Element): void {
  const parent = element.parentNode as Element;
  removeChild(document, element);
  place(document, parent, element, other);
}

/** Scripts that read the password look for `<connection` without a prefix. */
function withoutPrefix(document: ConfigurationDocument, parent: Element, element: Element): Element {
  const made = document.root.ownerDocument?.createElementNS(CONFIGURATION_NAMESPACE, 'connection');
  if (made === undefined) return element;
  made.setAttribute('xmlns', CONFIGURATION_NAMESPACE);
  for (const { name, value } of Array.from(element.attributes)) if (name !== 'xmlns') made.setAttribute(name, value);
  parent.insertBefore(made, element);
  parent.removeChild(element);
  document.changed = true;
  return made;
}

/**
 * Makes the first `<connection` of the text the element itself, complete on its line: the release's
 * scripts search the text for the password. Rewrites an earlier one in a comment as `< connection`.
 */
function connectionOnOneLine(document: ConfigurationDocument): string {
  const text = document.text();
  const at = firstConnection(text);
  const isFound = at !== -1 && at === firstConnection(withoutComments(text)) && /password="/.test(lineFrom(text, at));
  if (isFound) return text;
  document.changed = true;
  const written = document.text();
  const real = firstConnection(withoutComments(written));
  return written.slice(0, real).replaceAll(CONNECTION, '< connection') + written.slice(real);
}

function firstConnection(text: string): number {
  return text.search(new RegExp(CONNECTION.source));
}

/** The text with comments replaced by spaces of the same length. */
function withoutComments(text: string): string {
  return text.replaceAll(/<!--[^]*?-->|<!\[CDATA\[[^]*?\]\]>|<\?[^]*?\?>/g, (comment) => ' '.repeat(comment.length));
}

function lineFrom(text: string, at: number): string {
  const end = text.indexOf('\n', at);
  return text.slice(at, end === -1 ? undefined : end);
}
