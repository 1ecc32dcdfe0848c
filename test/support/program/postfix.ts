/**
 * A Postfix of the test's own: takes mail for one domain from loopback, and finds out only afterwards that it has no such
 * user, as relays before a mailbox server do.
 *
 * Needs root and Debian's postfix. Every file is in a folder of its own; the machine's Postfix, if it has one, is not touched.
 */
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { canConnect } from './debian.js'
import { unusedPort } from '../smtp/sink.js'
import { until } from '../until.js'

export interface PostfixOptions {
  /** Whose mail it takes. */
  readonly domain: string
  /** Where it sends mail for this domain: the bounces. */
  readonly bouncesTo: { readonly domain: string; readonly port: number }
}

/** @returns its port on loopback */
export async function openPostfix(t: Test, { domain, bouncesTo }: PostfixOptions): Promise<number> {
  const port = await unusedPort()
  const folder = mkdtempSync(join(tmpdir(), 'postfix-test-'))
  // Its programs run as their own users, and have to get there.
  chmodSync(folder, 0o755)
  for (const name of ['etc', 'spool', 'data']) mkdirSync(join(folder, name))
  await run('chown', ['postfix', join(folder, 'data')])
  writeFileSync(
    join(folder, 'etc', 'main.cf'),
    [
      'compatibility_level = 3.6',
      `queue_directory = ${folder}/spool`,
      `data_directory = ${folder}/data`,
      'command_directory = /usr/sbin',
      'daemon_directory = /usr/lib/postfix/sbin',
      'mail_owner = postfix',
      'setgid_group = postdrop',
      'myhostname = relay.users.test',
      `mydestination = ${domain}`,
      'inet_interfaces = 127.0.0.1',
      'mynetworks = 127.0.0.0/8',
      'alias_maps =',
      // Accepts all recipients and knows none: the delivery agent has to find out.
      'local_recipient_maps =',
      `transport_maps = inline:{ { ${bouncesTo.domain} = smtp:[127.0.0.1]:${bouncesTo.port} } }`,
      'default_transport = error:nowhere else',
      `maillog_file = ${folder}/log`,
      `maillog_file_prefixes = ${tmpdir()}`,
      'smtpd_relay_restrictions = permit_mynetworks, reject',
      'smtp_tls_security_level = may',
      '',
    ].join('\n'),
  )
  writeFileSync(join(folder, 'etc', 'master.cf'), services(port))
  const postfix = (command: string) => run('postfix', ['-c', join(folder, 'etc'), command])
  await postfix('start')
  t.teardown(async () => {
    await postfix('stop').catch(() => {})
    rmSync(folder, { recursive: true, force: true })
  })
  await until('Postfix answers', () => canConnect(port))
  return port
}

/** What must not be kept waiting for a free process. */
const UNLIMITED: readonly string[] = ['cleanup', 'bounce', 'defer', 'trace']

/** master(5): service, type, private, unprivileged, chroot, wakeup, most processes, program. */
function services(port: number): string {
  const local = ['cleanup', 'bounce', 'defer', 'trace', 'rewrite', 'error', 'retry', 'local', 'smtp', 'relay']
  const programs: Readonly<Record<string, string>> = {
    defer: 'bounce',
    trace: 'bounce',
    rewrite: 'trivial-rewrite',
    retry: 'error',
    relay: 'smtp',
  }
  return [
    `127.0.0.1:${port} inet n - n - - smtpd`,
    'pickup unix n - n 60 1 pickup',
    'qmgr unix n - n 5 1 qmgr',
    'tlsmgr unix - - n 1000? 1 tlsmgr',
    'proxymap unix - - n - - proxymap',
    'anvil unix - - n - 1 anvil',
    'scache unix - - n - 1 scache',
    'showq unix n - n - - showq',
    'flush unix n - n 1000? 0 flush',
    'verify unix - - n - 1 verify',
    'postlog unix-dgram n - n - 1 postlogd',
    ...local.map(name => {
      const privileges = name === 'local' ? 'n' : '-'
      const isPrivate = name === 'cleanup' ? 'n' : '-'
      const most = UNLIMITED.includes(name) ? '0' : '-'
      return `${name} unix ${isPrivate} ${privileges} n - ${most} ${programs[name] ?? name}`
    }),
    '',
  ].join('\n')
}

const execute = promisify(execFile)

async function run(command: string, args: readonly string[]): Promise<void> {
  await execute(command, args)
}
