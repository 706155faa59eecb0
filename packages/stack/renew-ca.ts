// Renews the CA of a stopped stack: issues a new certificate for the same key, or creates a new CA.

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
  /** The core's directory in its container. The script has checked that the stack is stopped. */
  coreFiles: string | undefined;
}

const USAGE = `Usage: ./scripts/renew-ca.sh [--data DIR] [--new-key]

Renews the CA of a stopped stack. When to do it and what follows: docs/certificates.md.

  --data DIR         data directory of the stack (default: data in the repository)
  --new-key          create a new CA: every device must enroll again. Without this option the CA keeps its
                     key and name, and device certificates keep working
  --help             show this help
`;

/** The program of renew-ca.sh; resolves with its exit code. */
export async function renewCa(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const layout = layoutOf(args.data);
  const files = certificateFiles(args.coreFiles ?? layout.core);
  if (!existsSync(files.ca) && !existsSync(files.renewal))
    throw new StackError(
      `No CA found in ${args.coreFiles ?? args.data} (${files.ca} is missing or not accessible).`,
      'give the data directory of the stack with --data DIR, and run this as the user that the stack runs as. If files are missing, start the stack: it restores or creates them',
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
    return `The CA has a new certificate for the same key and name, valid until ${until}.
Device certificates keep working. Give devices the new truststore (${files.truststore}, after the
next start) before the old CA certificate expires. The old certificate is kept in ${kept}
${start}`;
  return `Created a new CA, valid until ${until}. Certificates of the old CA are no longer accepted.
Every device must first trust the new CA (${files.truststore}, after the next start), then enroll again.
The old CA, including its key, was moved to ${kept}
Keep it private, and delete it once you are sure that you won't go back.
${start}`;
}
