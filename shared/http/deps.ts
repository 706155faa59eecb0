// What the functions need of the outside, handed in by the host.

import type { Settings } from '../config/settings.ts';
import type { ShownSetting } from '../config/shown-settings.ts';
import type { Thresholds } from '../config/thresholds.ts';
import type { Assets } from '../ports/assets.ts';
import type { Log } from '../ports/log.ts';
import type { LogFiles } from '../ports/log-files.ts';

export interface Deps {
  release: string;
  startedAt: Date;
  settings: Settings;
  settingsShown: ShownSetting[];
  thresholds: Thresholds;
  log: Log;
  logFiles: LogFiles;
  assets: Assets;
}
