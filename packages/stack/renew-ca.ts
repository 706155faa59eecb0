// Renews the CA of a stopped stack: a new certificate for the same key, or a new CA.

import { existsSync } from 'node:fs';
import { explainFileError, StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, say } from '@holdfast/kit/command';
import { prolongCa, replaceCa } from '@holdfast/pki/ca-renewal';
import { readCa } from '@holdfast/pki/certificate-authority';
import { type CertificateFiles, certificateFiles } from '@holdfast/pki/certificate-files';
import { dataDirectory, layoutOf, makeDirectories } from './process/layout.ts';
import { whileStopped } from './process/ownership.ts';

interface RenewCaArguments {
  /** Absolute. */
  data: string;
  newKey: boolean;
  /** The directory of the core in its container, whose stack the script has found stopped. */
  coreFiles: string | undefined;
}

const USAGE = `Usage: ./scripts/renew-ca.sh [--data DIR] [--new-key]

Renews the CA of a stack that is stopped; docs/certificates.md says when and what follows.

  --data DIR         the directory that the stack was started with (default: data in the repository)
  --new-key          a new CA: every device must enroll again. Without it the CA keeps its key and name,
                     and the certificates of all devices go on working
  --help             show this text
`;

/** The program of renew-ca.sh; resolves with its exit code. */
export async function renewCa(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const layout = layoutOf(args.data);
  const files = certificateFiles(args.coreFiles ?? layout.core);
  if (!existsSync(files.ca) && !existsSync(files.renewal))
    throw new StackError(
      `There is no CA in ${args.coreFiles ?? args.data} (${files.ca} is missing or cannot be reached).`,
      'name the directory that the stack was started with, --data DIR, as the user that the stack runs as; a start restores or makes what is missing',
    );
  if (args.coreFiles !== undefined) {
    say(await renew(files, args));
    return 0;
  }
  makeDirectories(layout);
  try {
    say(await whileStopped(call.home, layout, say, () => renew(files, args)));
  } catch (error) {
    throw explainFileError(error, files.directory);
  }
  return 0;
}

function readArguments(call: Invocation): RenewCaArguments | 'help' {
  const { values } = parseCommandLine({
    args: call.argv,
    options: {
      data: { type: 'string' },
      'new-key': { type: 'boolean' },
      'core-files': { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return 'help';
  const coreFiles = values['core-files'];
  return {
    data: dataDirectory(values.data, call),
    newKey: values['new-key'] === true,
    coreFiles: coreFiles === undefined ? undefined : dataDirectory(coreFiles, call),
  };
}

async function renew(files: CertificateFiles, { newKey, data, coreFiles }: RenewCaArguments): Promise<string> {
  const kept = newKey ? await replaceCa(files, new Date()) : await prolongCa(files, new Date());
  const { certificate } = readCa(files);
  const until = certificate.notAfter.toISOString().slice(0, 10);
  const how = coreFiles === undefined ? `./scripts/start.sh --embedded --data ${data}` : './scripts/start.sh';
  const start = `Start the stack again: ${how}\n`;
  if (!newKey)
    return `The CA has a new certificate for the same key and name, good until ${until}.
Certificates of devices go on working. Give devices the new truststore (${files.truststore} after the
next start) before the old CA certificate ends. The old one is kept in ${kept}
${start}`;
  return `There is a new CA, good until ${until}. Nothing that the old one has signed is accepted any more:
every device must enroll again, and trust the new CA first (${files.truststore} after the next start).
Everything of the old CA, its key too, was moved to ${kept}
Keep it private, and delete it when you do not want to go back.
${start}`;
}
