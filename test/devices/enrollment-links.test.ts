// What phones scan, byte for byte, and that a QR code says what it was made from.

import { decodeQR } from 'qr/decode.js';
import { describe, expect, it } from 'vitest';
import { qrSvg } from '@holdfast/kit/qr';
import { type EnrollmentFacts, enrollmentLinks, streamingPortOf } from '../../shared/devices/links.ts';

const FACTS: EnrollmentFacts = {
  host: 'cot.example.org',
  streamingPort: 8089,
  username: 'ada',
  token: 'AbC123',
  description: 'Rescue Team',
  registrationId: '0b6f5a3e-9d0c-4c7e-8a55-0d7a4f6f2f10',
};

describe('the links of enrollment', () => {
  it('are exactly what ATAK, iTAK and TAK Aware read', () => {
    expect(enrollmentLinks(FACTS)).toEqual({
      atak: 'tak://com.atakmap.app/enroll?host=cot.example.org&username=ada&token=AbC123',
      itak: 'Rescue Team,cot.example.org,8089,SSL',
      takaware:
        '{"passphrase":"false","type":"registration","serverCredentials":{"connectionString":"cot.example.org:8089:ssl"},' +
        '"userCredentials":{"username":"ada","password":"AbC123","registrationId":"0b6f5a3e-9d0c-4c7e-8a55-0d7a4f6f2f10"}}',
    });
  });

  it('encode what has a meaning in an address, and say another streaming port where there is room for it', () => {
    const { atak, itak, takaware } = enrollmentLinks({
      ...FACTS,
      host: '2001:db8::7',
      streamingPort: 9089,
      username: 'a&b c',
      token: 't+/=#%?é',
    });
    expect(atak).toBe(
      'tak://com.atakmap.app/enroll?host=2001%3Adb8%3A%3A7&username=a%26b%20c&token=t%2B%2F%3D%23%25%3F%C3%A9',
    );
    const { searchParams } = new URL(atak);
    expect([...searchParams]).toEqual([
      ['host', '2001:db8::7'],
      ['username', 'a&b c'],
      ['token', 't+/=#%?é'],
    ]);
    expect(itak).toBe('Rescue Team,2001:db8::7,9089,SSL');
    expect(JSON.parse(takaware)).toMatchObject({
      serverCredentials: { connectionString: '[2001:db8::7]:9089:ssl' },
      userCredentials: { username: 'a&b c', password: 't+/=#%?é' },
    });
  });

  it('have a description of one line without commas, and the host where it says nothing', () => {
    const itak = (description: string): string => enrollmentLinks({ ...FACTS, description }).itak;
    expect(itak('Team, North\r\n\u2028 East')).toBe('Team North East,cot.example.org,8089,SSL');
    expect(itak(' ,\n')).toBe('cot.example.org,cot.example.org,8089,SSL');
    expect(itak('x'.repeat(500))).toBe(`${'x'.repeat(60)},cot.example.org,8089,SSL`);
  });

  it('stream to the port of CORE_STREAMING_URL, else to 8089', () => {
    expect([undefined, 'tls://takserver', 'tls://127.0.0.1:18089', 'tls://[::1]:9'].map(streamingPortOf)).toEqual([
      8089, 8089, 18089, 9,
    ]);
  });
});

/** The path as pixels: `scale` to a module. */
function drawn(svg: string, scale = 4): { width: number; height: number; data: Uint8Array } {
  const size = Number(/viewBox="0 0 (\d+) /.exec(svg)?.[1]);
  const width = size * scale;
  const data = new Uint8Array(width * width * 4).fill(255);
  const [, dark = ''] = /fill="#000" d="([^"]*)"/.exec(svg) ?? [];
  for (const [, x, y, length] of dark.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g))
    for (let row = Number(y) * scale; row < (Number(y) + 1) * scale; row++)
      for (let column = Number(x) * scale; column < (Number(x) + Number(length)) * scale; column++)
        data.fill(0, (row * width + column) * 4, (row * width + column) * 4 + 3);
  return { width, height: width, data };
}

describe('a QR code', () => {
  const { atak, itak, takaware } = enrollmentLinks({ ...FACTS, token: 'k'.repeat(60) });

  it.each([atak, itak, takaware, 'é'])('says what it was made from: %s', (text) => {
    expect(decodeQR(drawn(qrSvg(text)))).toBe(text);
  });

  it('is black on white with a quiet zone of four modules, and holds nothing but two shapes', () => {
    const svg = qrSvg('tak://a');
    expect(svg).toMatch(
      /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 29 29" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h29v29h-29z"\/><path fill="#000" d="(?:M\d+ \d+h\d+v1h-\d+z)+"\/><\/svg>$/,
    );
    expect(svg).toContain('M4 4h7v1h-7z');
    const places = [...svg.matchAll(/M(\d+) (\d+)h(\d+)v1/g)].map(([, x, y, length]) => [x, y, length].map(Number));
    for (const [x = 0, y = 0, length = 0] of places)
      expect([x >= 4, y >= 4, x + length <= 25, y < 25]).toEqual([true, true, true, true]);
  });
});
