import { fakeTable, fakeVacuum } from './fake-vacuum.ts';
import { vacuumContract, type VacuumWorld } from './vacuum-contract.ts';

const fake = fakeVacuum();
let made = 0;

const without = (table: string) => fake.tables.filter((each) => each.table !== table);

const world: VacuumWorld = {
  facts: fake.vacuumFacts,
  vacuum: fake.coreVacuum,
  patient: fake.coreVacuum,
  async make(table) {
    made++;
    fake.tables = [...without(table), fakeTable(table, 1e6, { oid: 20_000 + made, reclaimable_bytes: 5e5 })];
  },
  async drop(table) {
    fake.tables = without(table);
  },
  async hold(table, application) {
    const held = fake.tables.find((each) => each.table === table);
    held?.holders.push({ pid: 77, user: 'reader', application, since: '2026-03-01T00:00:00.000Z' });
    return async () => {
      held?.holders.splice(0);
    };
  },
  async ended(job) {
    const order = fake.statements.get(job)?.order;
    const isHeld = fake.tables.some(({ table, holders }) => table === order?.table && holders.length > 0);
    if (isHeld) fake.end(job, '55P03', 'canceling statement due to lock timeout');
    else fake.end(job);
  },
  async crash() {
    fake.die();
  },
};

vacuumContract('in memory', () => world);
