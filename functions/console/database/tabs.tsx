// Links the pages about the core's database as tabs.

import { Tabs } from '../../pages/parts/card.tsx';

const TABS = [
  ['/database', 'Size'],
  ['/database/retention', 'Retention'],
  ['/database/runs', 'Runs'],
  ['/database/vacuum', 'Vacuum'],
] as const;

export function DatabaseTabs({ current }: { current: (typeof TABS)[number][0] }) {
  return <Tabs label="Database" tabs={TABS} current={current} />;
}
