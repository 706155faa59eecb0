// A `docker` for scripts: it writes down how it was called, and answers what the test has laid out
// for the first pattern that fits. With it a `sleep` that hardly sleeps.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Laid {
  /** One for each call; the last one stays. */
  says?: string | readonly string[];
  complains?: string;
  code?: number;
  /** Shell commands that run first, with the directory of the test in $FAKE. */
  does?: string;
}

/** Shell patterns of the whole command line, the first one that fits counts. */
export type Answers = Record<string, Laid>;

export class DockerProgram {
  readonly directory: string;
  readonly #calls: string;

  constructor(directory: string) {
    this.directory = directory;
    this.#calls = join(directory, 'calls');
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'sleep'), '#!/bin/sh\nexec /bin/sleep 0.02\n', { mode: 0o755 });
  }

  lay(answers: Answers): void {
    const cases = Object.entries(answers).map(([pattern, laid], index) => this.#case(pattern, laid, index));
    const text = `#!/bin/bash
FAKE=${this.directory}
printf '%s\\n' "$*" >>"$FAKE/calls"
case "$*" in
${cases.join('\n')}
esac
exit 0
`;
    writeFileSync(join(this.directory, 'docker'), text, { mode: 0o755 });
  }

  /** Every command line so far. */
  calls(): string[] {
    return existsSync(this.#calls) ? readFileSync(this.#calls, 'utf8').trimEnd().split('\n') : [];
  }

  #case(pattern: string, { says = '', complains = '', code = 0, does = ':' }: Laid, index: number): string {
    const texts = typeof says === 'string' ? [says] : says;
    for (const [number, each] of texts.entries()) writeFileSync(join(this.directory, `says-${index}-${number}`), each);
    writeFileSync(join(this.directory, `complains-${index}`), complains);
    const glob = pattern.replaceAll(/[^A-Za-z0-9*]/g, String.raw`\$&`);
    return `  ${glob})
    ${does}
    n=$(cat "$FAKE/count-${index}" 2>/dev/null || echo 0)
    echo $((n + 1)) >"$FAKE/count-${index}"
    [ "$n" -lt ${texts.length} ] || n=${texts.length - 1}
    cat "$FAKE/says-${index}-$n"
    cat "$FAKE/complains-${index}" >&2
    exit ${code} ;;`;
  }
}
