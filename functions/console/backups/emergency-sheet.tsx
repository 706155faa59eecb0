// GET /backups/emergency-sheet: one page to print, for the day on which the server is gone. It
// names the place of the key, never the key.

import { PROOF_LEVELS } from '../../../shared/backups/port.ts';
import { LEVEL_WORDS } from '../../../shared/backups/rules.ts';
import { type EmergencySheet, emergencySheet } from '../../../shared/backups/view.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { framed } from '../../pages/frame.tsx';
import { pagesOf } from '../../pages/page-routes.ts';
import { Card, Facts } from '../../pages/parts/card.tsx';
import { Warning } from '../../pages/parts/notice.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';

/** Adds the route of this file. */
export function emergencySheetPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  pages.get('/backups/emergency-sheet', { access: 'viewer' }, async function showSheet(c) {
    const sheet = await emergencySheet(deps);
    const actions = (
      <a class="button" href="/backups">
        Backups
      </a>
    );
    const body = <Sheet sheet={sheet} clock={clockOf(deps)} />;
    return framed(c, deps, { title: 'Emergency sheet', current: 'backups', body, actions });
  });
}

function Sheet({ sheet, clock }: { sheet: EmergencySheet; clock: Clock }) {
  const { name, place, printed_at: printed, problems, last_proven: proven } = sheet;
  return (
    <div class="sheet">
      {place === null ? (
        <Warning>No backups are made: BACKUP_TARGET is not set. This sheet can’t help until it is.</Warning>
      ) : null}
      {problems.map((problem) => (
        <Warning>{problem}</Warning>
      ))}
      <p class="screen">
        Print this page, and keep it where you find it without the server. Print a new one after every upgrade and
        change of BACKUP_*.
      </p>
      <Card title={`${name}: how to get it back`}>
        <ol>
          <li>
            <strong>Get the archive.</strong> Backups are in {place === null ? 'no place yet' : <code>{place}</code>}.{' '}
            {proven === null ? (
              'None is proven yet.'
            ) : (
              <>
                The last proven one is <code>{proven.name}</code> (<When at={proven.created_at} clock={clock} />, level{' '}
                {levelTitle(proven.level)}). Take a newer one if there is one.
              </>
            )}
          </li>
          <li>
            <strong>Get the key.</strong> {sheet.key.where}
          </li>
          <li>
            <strong>Install Holdfast</strong> {sheet.release} or newer on a machine with Linux.
          </li>
          <li>
            <strong>Restore.</strong> Write the key to FILE, readable only by you. In the directory of Holdfast, run
            <p>
              <code>{sheet.restore}</code>
            </p>
          </li>
          <li>
            <strong>Check.</strong> The console shows the CA fingerprint below under Certificates. Then point DNS or the
            address to the new machine; devices keep their certificates.
          </li>
        </ol>
      </Card>
      <Card title="Facts">
        <Facts
          of={{
            Console: sheet.console,
            Portal: sheet.portal,
            Stack: sheet.kind === 'embedded' ? 'embedded (without containers)' : 'in containers',
            Release: sheet.release,
            'CA fingerprint': sheet.ca_fingerprint === null ? 'unknown' : <code>{sheet.ca_fingerprint}</code>,
            'Variable of the key': <code>{sheet.key.variable}</code>,
            Printed: <When at={printed} clock={clock} />,
            'Key kept by': '______________________________',
            'Phone numbers': '______________________________',
          }}
        />
      </Card>
    </div>
  );
}

function levelTitle(level: string): string {
  const known = PROOF_LEVELS.find((each) => each === level);
  return known === undefined ? level : LEVEL_WORDS[known].title;
}
