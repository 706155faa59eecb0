// Real mail servers for tests: one that takes mail, and ones that are scripted to misbehave.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

/** A mail as a server took it. */
export interface Taken {
  from: string;
  to: string[];
  raw: string;
  encrypted: boolean;
  user: string | undefined;
}

const open: { close(): void }[] = [];

/** Closes every server of this file. */
export function closeMailServers(): void {
  for (const server of open.splice(0)) server.close();
}

export interface MailSink {
  port: number;
  taken: Taken[];
  close(): Promise<void>;
}

/** A mail server on a port of its own, or on that port, and what it took. */
export async function mailSink(options: SMTPServerOptions = {}, port = 0): Promise<MailSink> {
  const taken: Taken[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: options.key === undefined ? ['STARTTLS'] : [],
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        taken.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
          encrypted: session.secure,
          user: session.user,
        });
        done();
      });
    },
    ...options,
  });
  server.on('error', () => {});
  const listening = server.listen(port, '127.0.0.1');
  open.push({ close: () => server.close() });
  await once(listening, 'listening');
  const close = (): Promise<void> => new Promise((closed) => server.close(closed));
  return { port: (listening.address() as AddressInfo).port, taken, close };
}

/** A server that handles each connection so, and the connections that it had. */
export async function rawServer(handle: (socket: Socket) => void): Promise<{ port: number; peers: Socket[] }> {
  const peers: Socket[] = [];
  const server: Server = createServer((socket) => {
    peers.push(socket);
    socket.on('error', () => {});
    handle(socket);
  });
  open.push({
    close: () => {
      server.close();
      for (const peer of peers) peer.destroy();
    },
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { port: (server.address() as AddressInfo).port, peers };
}

/** Speaks SMTP by a list: the answer to each command that begins so; no answer to any other. */
export function scripted(answers: Record<string, string>): (socket: Socket) => void {
  return (socket) => {
    socket.write(answers['greeting'] ?? '220 here\r\n');
    socket.on('data', (data) => {
      for (const line of data.toString().split('\r\n')) {
        const command = Object.keys(answers).find((each) => line.startsWith(each));
        if (command !== undefined) socket.write(answers[command] ?? '');
      }
    });
  };
}

/** The parts of a mail: headers unfolded, bodies decoded. */
export function parseMail(raw: string): { headers: Map<string, string>; parts: Record<string, string> } {
  const [head = '', ...rest] = raw.split('\r\n\r\n');
  const headers = headersOf(head);
  const boundary = /boundary="([^"]+)"/.exec(headers.get('content-type') ?? '')?.[1] ?? 'none';
  const pieces = rest.join('\r\n\r\n').split(`--${boundary}`).slice(1, -1);
  const parts = pieces.map((piece) => {
    const [partHead = '', ...body] = piece.trimStart().split('\r\n\r\n');
    const partHeaders = headersOf(partHead);
    const [type = ''] = (partHeaders.get('content-type') ?? '').split(';');
    return [type, decoded(body.join('\r\n\r\n'), partHeaders.get('content-transfer-encoding'))];
  });
  return { headers, parts: Object.fromEntries(parts) as Record<string, string> };
}

function headersOf(head: string): Map<string, string> {
  const lines = head.replaceAll(/\r\n(?=[ \t])/g, '').split('\r\n');
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.replace(/^[^:]*: ?/, '')]));
}

function decoded(body: string, encoding: string | undefined): string {
  const text = body.replace(/\r\n$/, '').replaceAll('\r\n', '\n');
  if (encoding !== 'quoted-printable') return text;
  const bytes = text
    .replaceAll('=\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}
