// Checks if settings or thresholds were changed in their files since the start; they need a
// restart.

import { healthModule } from '../module.ts';

export const config = healthModule<{ changed_count: number; changed: string[]; sees_env_file: boolean }>({
  name: 'config',
  isLocal: true,

  remedy: [
    'Restart to apply the changes: ./scripts/stop.sh --data DIR, then ./scripts/start.sh --embedded --data DIR --detach; with containers ./scripts/start.sh.',
    'If the change was not intended, compare .env with your backup and the thresholds with git diff monitor/config/thresholds.yml, and restore the old values.',
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
            says: `${changed.join(', ')} changed since the start; restart to apply`,
          },
        ],

  well: ({ sees_env_file }) =>
    sees_env_file
      ? 'No changes since the start.'
      : "No changes of the thresholds since the start. Changes in .env can't be seen from inside a container. To apply them: ./scripts/start.sh.",
});
