/**
 * What only Debian has: a foreign SMTP server and three DKIM verifiers that nobody here wrote.
 *
 * Needs root and the packages that `.ci/run` installs; used by `make test-debian` alone.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { endWithTest } from './children.js'
import { unusedPort } from '../smtp/sink.js'
import { until } from '../until.js'

export interface DumpedMail {
  /** Lines that smtp-sink puts before the message: who connected, which envelope. */
  readonly envelope: string
  /** As sent, line ends restored. */
  readonly raw: Buffer
}

/** Postfix's smtp-sink, keeping every mail in a file. */
export async function openSmtpSink(t: Test): Promise<{ port: number; mails(): DumpedMail[] }> {
  const folder = makeFolder(t)
  const port = await unusedPort()
  const child = spawn('smtp-sink', ['-u', 'root', '-d', join(folder, 'mail.'), `127.0.0.1:${port}`, '100'])
  endWithTest(t, child)
  await until('smtp-sink', () => canConnect(port))
  return {
    port,
    mails: () => readdirSync(folder).map(name => undump(readFileSync(join(folder, name), 'latin1'))),
  }
}

/** smtp-sink(1), "DUMP FILE FORMAT": fields of its own first, Received the last of them; an empty line at the end. */
function undump(dump: string): DumpedMail {
  const [, envelope = '', message = ''] =
    /^((?:X-[^\n]*\n)*Received:[^\n]*\n(?:[ \t][^\n]*\n)*)(.*)\n$/s.exec(dump) ?? []
  return { envelope, raw: Buffer.from(message.replaceAll('\n', '\r\n'), 'latin1') }
}

/** Checks the first signature of a mail. @returns whether it is right */
export type Verify = (raw: Buffer) => Promise<boolean>

/**
 * The verifiers, by name, over a DNS server that knows these TXT records.
 *
 * opendkim-testmsg asks the system's name server on port 53 and takes no other: it runs in a mount namespace of its own,
 * where resolv.conf names ours.
 */
export async function openVerifiers(
  t: Test,
  zone: ReadonlyMap<string, string>,
): Promise<Record<string, Verify>> {
  const address = await openNameServer(t, zone)
  const resolvConf = join(makeFolder(t), 'resolv.conf')
  writeFileSync(resolvConf, `nameserver ${address}\n`)
  return {
    dkimpy: raw =>
      succeeds('/usr/bin/python3', ['-c', DKIMPY, JSON.stringify(Object.fromEntries(zone))], raw),
    'Mail::DKIM': raw => succeeds('/usr/bin/perl', ['-e', MAIL_DKIM, address], raw),
    'opendkim-testmsg': raw => succeeds('unshare', ['--mount', 'sh', '-c', OPENDKIM, resolvConf], raw),
  }
}

const DKIMPY = `
import dkim, json, sys
records = json.loads(sys.argv[1])
def txt(name, timeout=5):
    value = records.get(name.decode().rstrip('.'))
    return value.encode() if value else None
sys.exit(0 if dkim.verify(sys.stdin.buffer.read(), dnsfunc=txt) else 1)
`

const MAIL_DKIM = `
use strict; use Mail::DKIM::Verifier; use Net::DNS;
Mail::DKIM::DNS::resolver(Net::DNS::Resolver->new(nameservers => [$ARGV[0]]));
binmode STDIN;
my $verifier = Mail::DKIM::Verifier->new;
$verifier->PRINT($_) while <STDIN>;
$verifier->CLOSE;
exit($verifier->result eq 'pass' ? 0 : 1);
`

/** Silent when the signature is right, and then ends with 0. */
const OPENDKIM = 'mount --bind "$0" /etc/resolv.conf && exec opendkim-testmsg'

/** @returns an address of the loopback at which dnsmasq answers on port 53 */
async function openNameServer(t: Test, zone: ReadonlyMap<string, string>): Promise<string> {
  // 127.0.0.0/8 is all ours; the port has to be 53, so the address is what makes collisions unlikely.
  const address = `127.${[100, 250, 250].map(bound => 1 + Math.floor(Math.random() * bound)).join('.')}`
  const records = [...zone].map(
    // RFC 1035 §3.3.14: strings of at most 255 octets. DKIM records have no commas.
    ([name, value]) => `--txt-record=${[name, ...(value.match(/.{1,255}/g) ?? [])].join(',')}`,
  )
  const child = spawn('dnsmasq', [
    ...['--keep-in-foreground', '--no-resolv', '--no-hosts', '--conf-file=/dev/null', '--pid-file='],
    ...['--user=root', '--bind-interfaces', `--listen-address=${address}`, ...records],
  ])
  endWithTest(t, child)
  await until('dnsmasq', () => canConnect(53, address))
  return address
}

function succeeds(program: string, args: readonly string[], input: Buffer): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, (error, out, err) => {
      if (error === null) resolve(true)
      // Anything but the verdict "no" is a broken test.
      else if (typeof error.code === 'number' && !/Error|Can't|No module|unshare:|mount:/.test(err))
        resolve(false)
      else reject(new Error(`${program}: ${out}${err}`, { cause: error }))
    })
    child.stdin?.end(input)
  })
}

export function canConnect(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, host)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

function makeFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-debian-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
