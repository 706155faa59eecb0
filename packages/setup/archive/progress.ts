// How far long work on a release is, in percent: on a terminal whenever it changes, elsewhere every ten seconds.

const BETWEEN_LINES_MS = 10_000;

export interface PercentProgress {
  to: (done: number) => void;
  end: () => void;
}

export function percentProgress(
  total: number,
  output: { write: (text: string) => unknown; isTTY?: boolean },
  clockMs: () => number,
): PercentProgress {
  let shown = -1;
  let shownAtMs = clockMs();
  return {
    to(done) {
      const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
      if (percent === shown) return;
      if (output.isTTY !== true && clockMs() - shownAtMs < BETWEEN_LINES_MS) return;
      shown = percent;
      shownAtMs = clockMs();
      output.write(output.isTTY === true ? `\r  ${percent} %` : `  ${percent} %\n`);
    },
    end() {
      if (output.isTTY === true && shown >= 0) output.write('\r        \r');
    },
  };
}
