// A text as a QR code, drawn as SVG: black on white whatever the page around it is, with the quiet
// zone that scanners need, and nothing in it that runs.

import { encodeQR } from 'qr';

/** Of four modules, as the standard asks for. */
const QUIET_ZONE = 4;

/** Error correction medium: 15 % of it may be covered. */
export function qrSvg(text: string): string {
  const modules = encodeQR(text, 'raw', { ecc: 'medium', border: QUIET_ZONE });
  const size = modules.length;
  const dark = modules.flatMap((row, y) => runsOf(row).map(([x, length]) => `M${x} ${y}h${length}v1h-${length}z`));
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges">` +
    `<path fill="#fff" d="M0 0h${size}v${size}h-${size}z"/><path fill="#000" d="${dark.join('')}"/></svg>`
  );
}

/** Where dark modules begin, and how many there are in a row. */
function runsOf(row: readonly boolean[]): [x: number, length: number][] {
  const runs: [number, number][] = [];
  for (const [x, isDark] of row.entries()) {
    if (!isDark) continue;
    const last = runs.at(-1);
    if (last !== undefined && last[0] + last[1] === x) last[1] += 1;
    else runs.push([x, 1]);
  }
  return runs;
}
