// Versions of Holdfast for the stack in containers: the release before this one, this one, and later ones.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OUR_IMAGE, VERSION } from '../../../packages/setup/test/compose.ts';
import { releaseBefore, takePackages, unpack } from '../embedded/release-before.ts';
import { standIns } from './base-images.ts';
import { asInTests, copyCheckout } from './compose-stack.ts';
import { type ContainerEngine, must } from './engine.ts';

/** Of its own, since both may have one number. */
export const IMAGE_BEFORE = 'localhost/holdfast-before:test';

/** Puts the release before into a directory and builds its image on ours, with the packages of today. */
export async function checkoutBefore(engine: ContainerEngine, directory: string): Promise<void> {
  unpack(directory, releaseBefore());
  takePackages(directory);
  await must(process.execPath, ['scripts/build.ts'], { cwd: directory });
  await imageWith(engine, IMAGE_BEFORE, directory, ['dist', 'monitor/config', 'package.json']);
  for (const made of ['node_modules', 'dist']) rmSync(join(directory, made), { recursive: true });
  const ours = [...standIns()];
  for (const [image, stage] of standIns(directory))
    await engine.docker(['tag', ours.find(([, each]) => each === stage)?.[0] ?? '', image]);
  nameImage(directory, IMAGE_BEFORE);
  asInTests(directory);
}

/** Makes this checkout a version of its own, with one migration more; `files` replace programs of its image. */
export async function makeVersion(
  engine: ContainerEngine,
  version: string,
  files: Record<string, string> = {},
): Promise<string> {
  const directory = join(engine.directory, `version-${version}`);
  await copyCheckout(directory);
  const description = readFileSync(join(directory, 'package.json'), 'utf8');
  writeFileSync(
    join(directory, 'package.json'),
    description.replace(`"version": "${VERSION}"`, `"version": "${version}"`),
  );
  writeFileSync(join(directory, 'shared/runtime/migrations/0999-new.sql'), 'SELECT;\n');
  const programs = join(engine.directory, `programs-${version}`);
  mkdirSync(join(programs, 'dist'), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(programs, 'dist', name), text);
  const image = `localhost/holdfast:${version}`;
  await imageWith(engine, image, programs, Object.keys(files).map((name) => `dist/${name}`)); // prettier-ignore
  nameImage(directory, image);
  return directory;
}

function nameImage(directory: string, image: string): void {
  const file = join(directory, 'compose/program.yaml');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^( *image: *).*$/m, `$1${image}`));
}

/** Our image with these files and directories in place of its own. */
async function imageWith(
  engine: ContainerEngine,
  image: string,
  directory: string,
  names: readonly string[],
): Promise<void> {
  const context = join(engine.directory, `image-${image.replaceAll(/\W/g, '-')}`);
  mkdirSync(context);
  for (const name of names) cpSync(join(directory, name), join(context, name), { recursive: true });
  const replaced = names.length === 0 ? [] : ['USER root', `RUN rm -rf ${names.join(' ')}`, 'USER 10001:10001'];
  const copied = names.map((name) => `COPY ${name} ${name}`);
  writeFileSync(join(context, 'Dockerfile'), [`FROM ${OUR_IMAGE}`, ...replaced, ...copied, ''].join('\n'));
  await engine.docker(['build', '--quiet', '--tag', image, context]);
}
