// Forms that nobody should send: each is read or refused, in time, and nothing is left of those
// that are refused.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { Spool } from '../files/spool.ts';
import { readForm } from '../files/upload-routes.ts';
import { CoreFault, PageFault } from '../http/answers.ts';

const directory = mkdtempSync(join(tmpdir(), 'holdfast-fuzz-'));
afterAll(() => rmSync(directory, { recursive: true }));
const spool = new Spool({ directory, maxBytes: 2_000, steadyMs: () => 0, freeBytes: async () => 1e12 });
const PIECES = [
  '--b\r\n',
  '\r\n--b\r\n',
  '\r\n--b--\r\n',
  '--b--',
  'Content-Disposition: form-data; name="assetfile"; filename="x"\r\n',
  'Content-Disposition: form-data; name="assetfile"\r\n',
  'Content-Disposition: form-data; name="other"; filename="y"\r\n',
  'Content-Disposition: form-data; name="a\r\nb"\r\n',
  'Content-Type: text/plain; charset=utf-16\r\n',
  'Content-Transfer-Encoding: base64\r\n',
  '\r\n',
  '\n',
  '\r',
  '\0',
  'x'.repeat(1500),
  `X-Long: ${'y'.repeat(9000)}\r\n`,
];
const body = fc.array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ maxLength: 12 })), { maxLength: 14 });

function streamOf(text: string, size: number, breaksOff: boolean): ReadableStream<Uint8Array> {
  const bytes = Buffer.from(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at < bytes.length) controller.enqueue(new Uint8Array(bytes.subarray(at, (at += size))));
      else if (breaksOff) controller.error(new Error('gone'));
      else controller.close();
    },
  });
}

it('settles every form', async () => {
  let read = 0;
  const whole = ['--b\r\n', PIECES[4] ?? '', '\r\n', 'bytes', '\r\n--b--\r\n'];
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(body, fc.constant(whole)),
      fc.integer({ min: 1, max: 3000 }),
      fc.boolean(),
      async (pieces, size, breaksOff) => {
        const form = {
          contentType: 'multipart/form-data; boundary=b',
          body: streamOf(pieces.join(''), size, breaksOff),
        };
        try {
          const { file } = await readForm(form, spool);
          read++;
          await file.remove();
        } catch (error) {
          if (!(error instanceof CoreFault || error instanceof PageFault)) throw error;
        }
        expect(readdirSync(directory)).toEqual([]);
      },
    ),
    { numRuns: 400, timeout: 2_000 },
  );
  expect(read).toBeGreaterThan(20);
});
