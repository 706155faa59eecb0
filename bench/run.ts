// Runs one benchmark by name: npm run bench -- start

const BENCHMARKS: Record<string, () => Promise<void>> = {
  certs: async () => (await import('./certs.ts')).run(),
  cot: async () => (await import('./cot.ts')).run(),
  handshake: async () => (await import('./handshake.ts')).run(),
  health: async () => (await import('./health.ts')).run(),
  ldap: async () => (await import('./ldap.ts')).run(),
  live: async () => (await import('./live.ts')).run(),
  start: async () => (await import('./start.ts')).run(),
  verify: async () => (await import('./verify.ts')).run(),
  users: async () => (await import('./users.ts')).run(),
};

const name = process.argv[2];
const benchmark = name === undefined ? undefined : BENCHMARKS[name];
if (benchmark === undefined) {
  process.stderr.write(`Usage: npm run bench -- NAME, where NAME is one of: ${Object.keys(BENCHMARKS).join(', ')}\n`);
  process.exit(2);
}
await benchmark();
process.exit(0);
