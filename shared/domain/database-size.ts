// PostgreSQL's memory sizes: `256MB`, `1GB`, `65536kB`; a number alone counts kilobytes, as maintenance_work_mem does.

const UNIT_BYTES: Record<string, number> = { B: 1, kB: 1024, MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 };

/** Bytes of a PostgreSQL size, or undefined when the text is none. Units are case-sensitive, as in PostgreSQL. */
export function parseDatabaseSize(text: string): number | undefined {
  const match = /^(\d{1,12})\s*(B|kB|MB|GB|TB)?$/.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * (UNIT_BYTES[match[2] ?? 'kB'] ?? 0);
}
