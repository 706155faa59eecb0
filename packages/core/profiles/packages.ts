// Builds the data packages of profiles: files with a manifest, as ATAK imports them, and
// preferences.

import { strToU8, type Zippable, zipSync } from 'fflate';
import { escapeXml } from '../model/wire-text.ts';

/** Without an age, so that the same profile is the same bytes. */
const MODIFIED = { mtime: new Date(1980, 0, 1) };
/** What is larger is stored as it is: most of it is compressed already. */
const MAX_COMPRESSED_BYTES = 64 * 1024;

export interface PackedFile {
  /** Of the entry. */
  path: string;
  data: Uint8Array<ArrayBuffer>;
}

/** A zip archive. */
export function dataPackage(name: string, files: readonly PackedFile[]): Uint8Array<ArrayBuffer> {
  const entries = [...files, { path: 'MANIFEST/manifest.xml', data: manifest(name, files) }];
  const packed: Zippable = {};
  for (const { path, data } of entries) packed[path] = [data, { level: data.length > MAX_COMPRESSED_BYTES ? 0 : 6 }];
  return zipSync(packed, MODIFIED);
}

/** With it the device asks for channels, and for profiles at each connection to this host. */
export function channelPreferences(host: string): PackedFile {
  const entries = [
    ['prefs_enable_channels', 'String'],
    [`prefs_enable_channels_host-${host}`, 'String'],
    ['deviceProfileEnableOnConnect', 'Boolean'],
  ].map(([key = '', kind = '']) => `<entry key="${escapeXml(key)}" class="class java.lang.${kind}">true</entry>`);
  const text = `<?xml version="1.0" standalone="yes"?><preferences><preference version="1" name="com.atakmap.app.civ_preferences">${entries.join('')}</preference></preferences>`;
  return { path: 'file0/enable-channels.pref', data: strToU8(text) };
}

function manifest(name: string, files: readonly PackedFile[]): Uint8Array<ArrayBuffer> {
  const parameters = { uid: `profile-${name.toLowerCase()}`, name, onReceiveImport: 'true', onReceiveDelete: 'true' };
  const configuration = Object.entries(parameters).map(
    ([key, value]) => `<Parameter name="${key}" value="${escapeXml(value)}"/>`,
  );
  const contents = files.map(({ path }) => `<Content ignore="false" zipEntry="${escapeXml(path)}"/>`);
  const text = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><MissionPackageManifest version="2"><Configuration>${configuration.join('')}</Configuration><Contents>${contents.join('')}</Contents></MissionPackageManifest>`;
  return strToU8(text);
}
