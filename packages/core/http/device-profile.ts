// Builds the device profile for enrollment and connection: a data package that activates channels.

import { strToU8, zipSync } from 'fflate';
import { escapeXml } from '../model/wire-text.ts';

/** Without an age, so that the same profile is the same bytes. */
const NO_DATE = { mtime: new Date(1980, 0, 1) };

/** For the host that the request names, as the device has it. */
export function deviceProfile(name: 'Enrollment' | 'Connection', request: Request): Response {
  const { hostname } = new URL(request.url);
  const files = {
    'file0/enable-channels.pref': preferences({
      prefs_enable_channels: 'true',
      [`prefs_enable_channels_host-${hostname}`]: 'true',
    }),
  };
  const entries = { ...files, 'MANIFEST/manifest.xml': manifest(name, Object.keys(files)) };
  const zip = zipSync(
    Object.fromEntries(Object.entries(entries).map(([path, text]) => [path, strToU8(text)])),
    NO_DATE,
  );
  return new Response(zip, {
    headers: { 'content-type': 'application/zip', 'content-disposition': 'attachment; filename=profile.zip' },
  });
}

function preferences(values: Record<string, string>): string {
  const entries = Object.entries(values).map(
    ([key, value]) => `<entry key="${escapeXml(key)}" class="class java.lang.String">${escapeXml(value)}</entry>`,
  );
  return `<?xml version="1.0" standalone="yes"?><preferences><preference version="1" name="com.atakmap.app.civ_preferences">${entries.join('')}</preference></preferences>`;
}

function manifest(name: string, paths: readonly string[]): string {
  const parameters = { uid: `profile-${name.toLowerCase()}`, name, onReceiveImport: 'true', onReceiveDelete: 'true' };
  const configuration = Object.entries(parameters).map(([key, value]) => `<Parameter name="${key}" value="${value}"/>`);
  const contents = paths.map((path) => `<Content ignore="false" zipEntry="${escapeXml(path)}"/>`);
  return `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><MissionPackageManifest version="2"><Configuration>${configuration.join('')}</Configuration><Contents>${contents.join('')}</Contents></MissionPackageManifest>`;
}
