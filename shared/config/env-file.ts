// The .env format: NAME=value lines with # comments, values plain, in single quotes (literal) or in double quotes
// (\n, \t, \", \\ and \$ are escapes). A $ stands for itself here; Docker Compose would put a variable in its place, so
// a value with a $ belongs in single quotes, which both read alike.

export interface EnvFile {
  values: Record<string, string>;
  /** Lines that cannot be read, by number. */
  problems: { line: number; message: string }[];
}

const ASSIGNMENT = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/;
const DOUBLE_QUOTED = /^"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$/;
const SINGLE_QUOTED = /^'([^']*)'\s*(?:#.*)?$/;
const ESCAPES: Record<string, string> = { n: '\n', t: '\t', r: '\r' };

/** Parses the text of an env file; a later line wins over an earlier one of the same name. */
export function parseEnvFile(text: string): EnvFile {
  const file: EnvFile = { values: {}, problems: [] };
  for (const [index, raw] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const assignment = ASSIGNMENT.exec(line);
    const value = assignment ? unquote(assignment[2] ?? '') : undefined;
    if (assignment === null) file.problems.push({ line: index + 1, message: 'is not NAME=value' });
    else if (value === undefined)
      file.problems.push({ line: index + 1, message: 'has a quote that is not closed on its line, or text behind it' });
    else file.values[assignment[1] ?? ''] = value;
  }
  return file;
}

function unquote(text: string): string | undefined {
  if (text.startsWith('"')) {
    const body = DOUBLE_QUOTED.exec(text)?.[1];
    return body?.replaceAll(/\\(.)/g, (_, escaped: string) => ESCAPES[escaped] ?? escaped);
  }
  if (text.startsWith("'")) return SINGLE_QUOTED.exec(text)?.[1];
  return text.replace(/(^|\s)#.*$/, '').trim();
}
