// What the members of measured data are called: their names in the API say too much to some and too little to others.

const WORDS: Readonly<Record<string, string>> = {
  total_bytes: 'Size',
  live_bytes: 'Of that live',
  overhead_bytes: 'Of that overhead',
  wal_bytes: 'WAL',
  max_wal_bytes: 'WAL at most',
  lost_events: 'Events lost in 24 hours',
  growth_bytes_per_day: 'Growth a day',
  full_in_days: 'Disk full in',
  full_in_days_earliest: 'At the earliest in',
  full_in_days_latest: 'At the latest in',
  growth_basis: 'Forecast from',
  growth_reason: 'Why there is no forecast',
  growth_since: 'Samples since',
  fillers: 'Who fills it',
  uids: 'Clients (UID)',
  types: 'CoT types',
  grown_tables: 'Tables that grew',
  policy: 'Retention that would hold the size',
  dead_tuples: 'Dead rows',
  live_tuples: 'Live rows',
  dead_pct: 'Dead',
  used_pct: 'Used',
  free_bytes: 'Free',
  inodes_used_pct: 'Inodes used',
  mounts: 'Disks',
  settings_wanted: 'Settings wanted',
  settings_differ: 'Settings that differ',
  holders: 'What holds up the cleaning',
  issued: 'Issued certificates that end next',
  issued_count: 'Issued certificates',
  least_days_left: 'First one ends in',
  unproven: 'Revocations not proven',
  bases: 'Bases of the directory',
  doors: 'Where it answers',
  memory_pct: 'Memory used',
  milliseconds: 'Took',
  latency_seconds: 'From end to end',
  worst_offset_seconds: 'Largest difference',
};

/** `settings_stock` is `Settings stock`; units at the end go, for the value has them. */
export function memberInWords(key: string): string {
  const known = WORDS[key];
  if (known !== undefined) return known;
  const words = key
    .replace(/_(bytes|pct|seconds)$/, '')
    .replace(/_at$/, '')
    .replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
