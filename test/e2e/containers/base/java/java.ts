// Takes the place of Java for the programs of a made-up release: `java [-Xmx…] [-D…] -jar FILE
// ARGUMENTS`. What the programs are told by CoreConfig.xml is all that they know.

import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { Refused } from './core-config.ts';
import type { JavaCall } from './java-call.ts';
import { runSchemaManager } from './schema.ts';
import { runPlugins, runRetention, runServer } from './server.ts';
import { runUserManager } from './users.ts';

const PROGRAMS: Record<string, (call: JavaCall) => Promise<void>> = {
  'takserver.war': runServer,
  'takserver-pm.jar': runPlugins,
  'takserver-retention.jar': runRetention,
  'SchemaManager.jar': runSchemaManager,
  'UserManager.jar': runUserManager,
};

/** As an image of Java has it; the directory `conf` is there. */
const JAVA_HOME = '/opt/java/openjdk';

/** Options may stand before `-jar` and after it: the first word that is none is the file. */
function callOf(words: readonly string[]): JavaCall {
  const at = words.findIndex((word) => !word.startsWith('-'));
  if (at === -1 || !words.slice(0, at).includes('-jar')) throw new Refused('Usage: java [options] -jar FILE');
  const options = words.slice(0, at);
  const valueOf = (prefix: string): string =>
    options.find((word) => word.startsWith(prefix))?.slice(prefix.length) ?? '';
  return {
    file: words[at] ?? '',
    profile: valueOf('-Dspring.profiles.active='),
    heap: valueOf('-Xmx'),
    arguments: words.slice(at + 1),
  };
}

async function main(): Promise<void> {
  if (process.argv.at(-1) === '-version') {
    if (process.argv.includes('-XshowSettings:properties')) process.stderr.write(`    java.home = ${JAVA_HOME}\n`);
    process.stderr.write('openjdk version "17.0.12" (a stand-in)\n');
    return;
  }
  const call = callOf(process.argv.slice(2));
  if (!existsSync(call.file)) throw new Refused(`Error: Unable to access jarfile ${call.file}`);
  const { JDK_JAVA_OPTIONS } = process.env;
  if (JDK_JAVA_OPTIONS !== undefined) process.stderr.write(`NOTE: Picked up JDK_JAVA_OPTIONS: ${JDK_JAVA_OPTIONS}\n`);
  const program = PROGRAMS[basename(call.file)];
  if (program === undefined) throw new Refused(`no main manifest attribute, in ${call.file}`);
  process.stdout.write(`${basename(call.file)} ${call.profile} has a heap of ${call.heap}\n`);
  await program(call);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Refused ? error.message : String((error as Error).stack ?? error)}\n`);
  process.exit(1);
});
