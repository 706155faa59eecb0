// What stands in front of the pages is held to: whatever must not happen on a page is seen when it does.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { barriers } from './accessible.ts';
import { chromiumMissing, startChromium } from './chromium.ts';
import { newVisitor, PHONE, WITHOUT_SCRIPT } from './visitor.ts';

const BAD = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Bad</title><link rel="stylesheet" href="/style.css">
<main><h1>Bad</h1><p>grey</p><div>${'wide'.repeat(200)}</div><img src="http://192.0.2.1/x.png" alt=""><input>
<script src="/script.js"></script><script>document.title = 'inline'</script></main></html>`;

const NAME = 'a page that does everything wrong is caught at all of it';

it.skipIf(chromiumMissing !== undefined)(chromiumMissing ?? NAME, async () => {
  const server = createServer((request, response) => {
    const script = request.url === '/script.js';
    const style = request.url === '/style.css';
    const type = script ? 'text/javascript' : style ? 'text/css' : 'text/html';
    const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src *";
    response.writeHead(request.url === '/broken' ? 500 : 200, {
      'content-type': type,
      'content-security-policy': policy,
    });
    response.end(script ? 'throw new Error("thrown")' : style ? 'p { color: #bbb; background: #fff }' : BAD);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser = await startChromium();
  try {
    const { page, problems, fits } = await newVisitor(browser, PHONE, [base]);
    await page.goto(`${base}/broken`);
    await fits();
    const all = problems.join('\n');
    for (const what of [
      /leaves the stack: http:\/\/192/,
      /thrown/,
      /Content Security Policy/,
      /500 for/,
      /px wide in 360/,
    ])
      expect(all).toMatch(what);
    const wrong = (await barriers(page)).join('\n');
    for (const what of [/^label \(critical\)/m, /^color-contrast \(serious\)/m]) expect(wrong).toMatch(what);

    const plain = await newVisitor(browser, WITHOUT_SCRIPT, [base]);
    await plain.page.goto(base);
    await plain.fits();
    expect([await plain.page.title(), plain.problems.join('\n')]).toEqual([
      'Bad',
      expect.stringMatching(/wide in 360/),
    ]);
    expect(await plain.transferred()).toBeGreaterThan(BAD.length);
  } finally {
    await browser.close();
    server.close();
  }
});
