// Runs one benchmark by name: npm run bench -- start

const BENCHMARKS: Record<string, () => Promise<void>> = {
  backup: async () => (await import('./backup.ts')).run(),
  certs: async () => (await import('./certs.ts')).run(),
  cluster: async () => (await import('./cluster.ts')).run(),
  connections: async () => (await import('./connections.ts')).run(),
  cot: async () => (await import('./cot.ts')).run(),
  forecast: async () => (await import('./forecast.ts')).run(),
  guesses: async () => (await import('./guesses.ts')).run(),
  handshake: async () => (await import('./handshake.ts')).run(),
  history: async () => (await import('./history.ts')).run(),
  health: async () => (await import('./health.ts')).run(),
  ldap: async () => (await import('./ldap.ts')).run(),
  live: async () => (await import('./live.ts')).run(),
  missions: async () => (await import('./missions.ts')).run(),
  pages: async () => (await import('./pages.ts')).run(),
  preview: async () => (await import('./retention-preview.ts')).run(),
  retention: async () => (await import('./retention.ts')).run(),
  start: async () => (await import('./start.ts')).run(),
  'vacuum-tuning': async () => (await import('./vacuum-tuning.ts')).run(),
  verify: async () => (await import('./verify.ts')).run(),
  thinning: async () => (await import('./thinning.ts')).run(),
  users: async () => (await import('./users.ts')).run(),
};

const [first, second] = process.argv.slice(2).filter((word) => word !== '--');
const name = first === 'retention' && second?.endsWith('preview') === true ? 'preview' : first;
const benchmark = name === undefined ? undefined : BENCHMARKS[name];
if (benchmark === undefined) {
  process.stderr.write(`Usage: npm run bench -- NAME, where NAME is one of: ${Object.keys(BENCHMARKS).join(', ')}\n`);
  process.exit(2);
}
await benchmark();
process.exit(0);
