// Settings and thresholds that were changed in their files after the start: they count only after the next one.

import { healthModule } from '../module.ts';

export const config = healthModule<{ changed_count: number; changed: string[]; sees_env_file: boolean }>({
  name: 'config',

  remedy: [
    'Restart to use what was changed: ./scripts/stop.sh --data DIR, then ./scripts/start.sh --embedded --data DIR --detach; with containers ./scripts/start.sh.',
    'If nobody meant to change it, compare .env with your backup and the thresholds with git diff monitor/config/thresholds.yml, and put back what was there.',
  ],

  async read({ configurationFiles, wanted }) {
    const changed = await configurationFiles.changedSinceStart();
    return { changed_count: changed.length, changed, sees_env_file: wanted.container === undefined };
  },

  findings: ({ changed }) =>
    changed.length === 0
      ? []
      : [
          {
            kind: 'fact',
            status: 'note',
            says: `${changed.join(', ')} changed since the start; restart to use ${changed.length === 1 ? 'it' : 'them'}`,
          },
        ],

  well: ({ sees_env_file }) =>
    sees_env_file
      ? 'Every setting in force is the one in its file.'
      : 'The settings in force are those that this container was made with. Whether .env was changed since cannot be seen from inside: docker compose up -d makes anew what it concerns.',
});
