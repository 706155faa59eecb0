import { strFromU8, strToU8, unzipSync } from 'fflate';
import { SaxesParser } from 'saxes';
import { describe, expect, it } from 'vitest';
import { type DataPackage, dataPackage, safeFileName } from '../../shared/devices/certificates/data-package.ts';

const trust = { fileName: 'truststore.p12', bytes: strToU8('the CA') };
const client = { fileName: 'ada~phone.p12', bytes: strToU8('key and certificate') };
const WITH_KEY: DataPackage = {
  app: 'atak',
  uid: '0b7f9b2e-3f4c-4f57-9c9e-6a1f0d2a4b11',
  description: 'Rescue 7',
  host: 'cot.example.org',
  streamingPort: 8089,
  trust,
  client,
};
const { client: _, ...WITHOUT_KEY } = WITH_KEY;
const TO_ENROLL: DataPackage = { ...WITHOUT_KEY, enroll: { enrollmentPort: 8446, apiPort: 8443 } };

function opened(wanted: DataPackage): Record<string, string> {
  const files = Object.entries(unzipSync(dataPackage(wanted)));
  return Object.fromEntries(files.map(([name, bytes]) => [name, strFromU8(bytes)]));
}

/** The text of each entry of the preferences, or throws where they are no XML. */
function entriesOf(pref: string | undefined): Record<string, string> {
  const found: Record<string, string> = {};
  let key = '';
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ attributes }) => (key = attributes['key'] ?? ''));
  parser.on('text', (text) => {
    if (key !== '') found[key] = (found[key] ?? '') + text;
  });
  parser.on('closetag', () => (key = ''));
  parser.write(pref ?? '').close();
  return found;
}

describe('a data package for ATAK', () => {
  it('is a mission package whose preferences name the connection, the truststore and the client certificate', () => {
    const files = opened(WITH_KEY);
    expect(Object.keys(files)).toEqual([
      'MANIFEST/manifest.xml',
      'certs/config.pref',
      'certs/truststore.p12',
      'certs/ada_phone.p12',
    ]);
    expect([files['certs/truststore.p12'], files['certs/ada_phone.p12']]).toEqual(['the CA', 'key and certificate']);
    expect(files['MANIFEST/manifest.xml']).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<MissionPackageManifest version="2">
  <Configuration>
    <Parameter name="uid" value="0b7f9b2e-3f4c-4f57-9c9e-6a1f0d2a4b11"/>
    <Parameter name="name" value="Rescue 7"/>
    <Parameter name="onReceiveDelete" value="true"/>
  </Configuration>
  <Contents>
    <Content ignore="false" zipEntry="certs/config.pref"/>
    <Content ignore="false" zipEntry="certs/truststore.p12"/>
    <Content ignore="false" zipEntry="certs/ada_phone.p12"/>
  </Contents>
</MissionPackageManifest>
`);
    expect(files['certs/config.pref']).toBe(`<?xml version='1.0' encoding='UTF-8' standalone='yes'?>
<preferences>
  <preference version="1" name="cot_streams">
    <entry key="count" class="class java.lang.Integer">1</entry>
    <entry key="description0" class="class java.lang.String">Rescue 7</entry>
    <entry key="enabled0" class="class java.lang.Boolean">true</entry>
    <entry key="connectString0" class="class java.lang.String">cot.example.org:8089:ssl</entry>
    <entry key="caLocation0" class="class java.lang.String">cert/truststore.p12</entry>
    <entry key="caPassword0" class="class java.lang.String">atakatak</entry>
    <entry key="certificateLocation0" class="class java.lang.String">cert/ada_phone.p12</entry>
    <entry key="clientPassword0" class="class java.lang.String">atakatak</entry>
  </preference>
  <preference version="1" name="com.atakmap.app_preferences">
    <entry key="displayServerConnectionWidget" class="class java.lang.Boolean">true</entry>
    <entry key="caLocation" class="class java.lang.String">cert/truststore.p12</entry>
    <entry key="caPassword" class="class java.lang.String">atakatak</entry>
    <entry key="certificateLocation" class="class java.lang.String">cert/ada_phone.p12</entry>
    <entry key="clientPassword" class="class java.lang.String">atakatak</entry>
  </preference>
</preferences>
`);
  });

  it('without a client certificate makes the phone enroll, at the ports that are not the usual ones', () => {
    const files = opened(TO_ENROLL);
    expect(Object.keys(files)).toEqual(['MANIFEST/manifest.xml', 'certs/config.pref', 'certs/truststore.p12']);
    expect(files['certs/config.pref']).toBe(`<?xml version='1.0' encoding='UTF-8' standalone='yes'?>
<preferences>
  <preference version="1" name="cot_streams">
    <entry key="count" class="class java.lang.Integer">1</entry>
    <entry key="description0" class="class java.lang.String">Rescue 7</entry>
    <entry key="enabled0" class="class java.lang.Boolean">true</entry>
    <entry key="connectString0" class="class java.lang.String">cot.example.org:8089:ssl</entry>
    <entry key="caLocation0" class="class java.lang.String">cert/truststore.p12</entry>
    <entry key="caPassword0" class="class java.lang.String">atakatak</entry>
    <entry key="useAuth0" class="class java.lang.Boolean">true</entry>
    <entry key="cacheCreds0" class="class java.lang.String">Cache credentials</entry>
    <entry key="enrollForCertificateWithTrust0" class="class java.lang.Boolean">true</entry>
  </preference>
  <preference version="1" name="com.atakmap.app_preferences">
    <entry key="displayServerConnectionWidget" class="class java.lang.Boolean">true</entry>
    <entry key="caLocation" class="class java.lang.String">cert/truststore.p12</entry>
    <entry key="caPassword" class="class java.lang.String">atakatak</entry>
  </preference>
</preferences>
`);
    const moved = opened({ ...TO_ENROLL, enroll: { enrollmentPort: 18446, apiPort: 18443 } })['certs/config.pref'];
    expect(moved).toContain(
      '    <entry key="apiCertEnrollmentPort" class="class java.lang.String">18446</entry>\n' +
        '    <entry key="apiSecureServerPort" class="class java.lang.String">18443</entry>\n',
    );
    expect(entriesOf(opened({ ...WITH_KEY, apiPort: 9443 })['certs/config.pref'])).toMatchObject({
      apiSecureServerPort: '9443',
    });
  });
});

describe('a data package for iTAK', () => {
  it('is flat, with the same preferences and no manifest', () => {
    for (const wanted of [WITH_KEY, TO_ENROLL]) {
      const flat = opened({ ...wanted, app: 'itak' });
      expect(Object.keys(flat)).toEqual([
        'config.pref',
        'truststore.p12',
        ...(wanted.client === undefined ? [] : ['ada_phone.p12']),
      ]);
      expect(flat['config.pref']).toBe(opened(wanted)['certs/config.pref']);
    }
  });
});

describe('any data package', () => {
  it('is the same for the same input', () => {
    for (const wanted of [WITH_KEY, TO_ENROLL, { ...WITH_KEY, app: 'itak' as const }])
      expect(dataPackage(wanted)).toEqual(dataPackage({ ...wanted }));
  });

  it('takes any description as text, never as markup', () => {
    const description = `<b>"Rescue" & 'Fire'</b>\n\u0000\uFFFF ä 密`;
    const files = opened({ ...WITH_KEY, description });
    expect(entriesOf(files['certs/config.pref'])['description0']).toBe(`<b>"Rescue" & 'Fire'</b> ?? ä 密`);
    expect(() => entriesOf(files['MANIFEST/manifest.xml'])).not.toThrow();
  });

  it('writes an address of IPv6 in brackets', () => {
    const { connectString0 } = entriesOf(opened({ ...WITH_KEY, host: '2001:db8::1' })['certs/config.pref']);
    expect(connectString0).toBe('[2001:db8::1]:8089:ssl');
  });

  it.each([
    ['../../ada.p12', '__.._ada.p12'],
    ['a b/ü\\".p12', 'a_b____.p12'],
    ['', '_.p12'],
    ['config.pref', 'config.pref.p12'],
    ['TRUSTSTORE.p12', 'client-TRUSTSTORE.p12'],
  ])('has no file of the name %j', (fileName, safe) => {
    const files = opened({ ...WITH_KEY, app: 'itak', client: { ...client, fileName } });
    expect(Object.keys(files)).toEqual(['config.pref', 'truststore.p12', safe]);
  });
});

describe('a safe file name', () => {
  it('is never empty, hidden, long, or another directory', () => {
    expect(['', '.', '..', '.bashrc', 'a/../b', `${'x'.repeat(300)}.p12`].map(safeFileName)).toEqual([
      '_',
      '_',
      '_',
      '_bashrc',
      'a_.._b',
      `${'x'.repeat(96)}.p12`,
    ]);
  });
});
