/**
 * The executable and the Debian package as a sysadmin meets them: on a clean Debian 12 without Node, under a real systemd.
 *
 * `make test-package` builds both before.
 */
import t from 'tap'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { bootDebian, type DebianMachine } from './debian-machine.js'

const program = resolve('dist/postroad')
const debs = readdirSync('dist').filter(name => name.endsWith('.deb'))
const deb = resolve(
  'dist',
  debs.sort((a, b) => statSync(join('dist', a)).mtimeMs - statSync(join('dist', b)).mtimeMs).at(-1)!,
)

t.setTimeout(900_000)
let machine: DebianMachine
const sh = (script: string) => machine.sh(script)

t.before(async () => {
  machine = await bootDebian(t)
  copyFileSync(program, join(machine.folder, 'usr/local/bin/postroad-try'))
  copyFileSync(deb, join(machine.folder, 'root/postroad.deb'))
  // What the executable is tried with: a user of no standing, in an empty folder.
  await sh('chmod 755 /usr/local/bin/postroad-try; useradd --create-home fresh')
  await sh('runuser -u fresh -- mkdir /home/fresh/empty')
})

const asFresh = (script: string) =>
  sh(`cd /home/fresh/empty; exec env -i PATH=/usr/bin:/bin POSTROAD_CONFIG=/home/fresh/empty/c.toml setpriv --reuid=fresh --regid=fresh --clear-groups bash --norc -euc '
    serve() { (setsid /usr/local/bin/postroad-try serve </dev/null >>log 2>&1 & echo $! >pid); for i in $(seq 300); do if curl -sf -o answer http://127.0.0.1:18025/health; then return; fi; sleep 0.1; done; cat log; exit 1; }
    send() { curl -sf http://127.0.0.1:18025/api/v1/email/send -H "Authorization: Bearer $(cat key)" -d "{\\"to\\": \\"$1\\", \\"from_email\\": \\"shop@sender.test\\", \\"subject\\": \\"Hello\\", \\"html\\": \\"<p>Hello</p>\\"}"; }
    postroad-try() { /usr/local/bin/postroad-try "$@"; }
    ${script}'`)
const fieldOf = (json: string, ...path: string[]): unknown =>
  path.reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], JSON.parse(json))

const configuration = (more: string) => `hostname = "mail.postroad.test"
data_dir = "/home/fresh/empty/data"
[http]
listen = ["127.0.0.1:18025"]
[submission]
listen = ["127.0.0.1:12587"]
listen_tls = []
[inbound]
listen = ["127.0.0.1:12525"]
${more}`

t.test(
  'the executable sends a mail from an empty folder, without Node and with an empty environment',
  async t => {
    await t.rejects(sh('command -v node'), 'there is no Node')
    await asFresh(`cat >c.toml <<"END"\n${configuration('[mta]\ncapture = true')}\nEND`)
    const made = await asFresh('postroad-try init --json')
    await asFresh(`echo ${String(fieldOf(made, 'key', 'key'))} >key`)
    await asFresh(
      `postroad-try domain add sender.test --vouch --workspace ${String(fieldOf(made, 'workspace', 'id'))}`,
    )
    await asFresh(
      'serve; send ann@one.test; for i in $(seq 100); do postroad-try capture list --json >caught; if grep -q ann@one.test caught; then exit 0; fi; sleep 0.1; done; cat log; exit 1',
    )
    t.match(
      await asFresh('postroad-try capture show 1'),
      /Subject: Hello/,
      'what takes mails apart is inside',
    )
    t.equal(
      await asFresh('ls -A'),
      'answer\nc.toml\ncaught\ndata\nkey\nlog\npid\n',
      'it has left nothing else there',
    )
    t.equal(await sh('find /tmp /var/tmp /dev/shm -user fresh'), '', 'and nothing in temporary folders')
  },
)

t.test('it survives kill -9', async t => {
  await asFresh('send bob@one.test; kill -9 $(cat pid); sleep 0.5; serve')
  await asFresh(
    'for i in $(seq 100); do postroad-try capture list --json >caught; if grep -q bob@one.test caught; then exit 0; fi; sleep 0.1; done; cat log; exit 1',
  )
  t.match(
    await asFresh('cat caught'),
    /bob@one\.test/,
    'what was answered with 200 is delivered by the next process',
  )
})

t.test('it imports contacts while it serves: the programs of those threads are inside', async t => {
  const made = await asFresh(
    'printf "email,city\\nann@one.test,Ulm\\nbob@one.test,Bonn\\n" >people.csv; workspace=$(postroad-try workspace list --json | grep -oE "[0-9a-f]{8}-[0-9a-f-]{27}" | head -1); postroad-try contacts import people.csv --json --workspace $workspace',
  )
  t.match(JSON.parse(made), { status: 'completed', created: 2, rejected: 0 })
  t.equal(await asFresh('grep -c "thread that imports" log || true'), '0\n')
})

t.test('it backs up while it runs, and a restored copy takes mail and holds it', async t => {
  await asFresh(
    'postroad-try backup copy.db; kill $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.1; done; rm -r data; mkdir -m 700 data; postroad-try restore copy.db; serve',
  )
  t.match(await asFresh('postroad-try message list --to ann@one.test --json'), /ann@one\.test/)
  await asFresh('send cleo@one.test')
  t.match(await asFresh('postroad-try queue list --json'), /cleo@one\.test/)
  await asFresh('kill $(cat pid)')
})

t.test('where temporary folders forbid to execute, it finds another', async t => {
  await sh('mkdir /noexec; mount -t tmpfs -o noexec,mode=1777 none /noexec')
  t.match(await asFresh('TMPDIR=/noexec postroad-try message list --json'), /bob@one\.test/)
})

/** The package as another version, installed next by `upgrade`. @param change gets its folder */
async function repackage(version: string, change: (root: string) => void = () => undefined): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'repackaged-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  execFileSync('dpkg-deb', ['-R', deb, root])
  const control = join(root, 'DEBIAN/control')
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: .*$/m, `Version: ${version}`))
  change(root)
  execFileSync('dpkg-deb', [
    '--root-owner-group',
    '-Zgzip',
    '-z1',
    '--build',
    root,
    join(machine.folder, 'root/next.deb'),
  ])
}

/** Non-interactive: a question would end it. */
const upgrade = (option = '') =>
  sh(`cd /root; DEBIAN_FRONTEND=noninteractive dpkg ${option} -i next.deb </dev/null`)

const sendTo = (to: string) =>
  `curl -sf http://127.0.0.1:8025/api/v1/email/send -H "Authorization: Bearer $(cat /root/key)" -d '{"to": "${to}", "from_email": "shop@sender.test", "subject": "Hello", "html": "<p>Hello</p>"}'`

t.test('apt installs the package; two lines and a start are all it takes', async t => {
  await sh('cd /root; DEBIAN_FRONTEND=noninteractive apt-get install -y ./postroad.deb')
  t.equal((await sh('systemctl is-enabled postroad')).trim(), 'enabled')
  t.equal(
    (await sh('systemctl is-active postroad || true')).trim(),
    'inactive',
    'its configuration is not edited yet',
  )
  t.equal(
    (await sh('stat -c "%U:%G %a" /etc/postroad/postroad.toml /var/lib/postroad')).trim(),
    'root:postroad 640\npostroad:postroad 700',
  )
  await sh(
    `sed -i 's/^hostname = .*/hostname = "mail.postroad.test"/' /etc/postroad/postroad.toml; printf '[mta]\ncapture = true\n' >>/etc/postroad/postroad.toml; systemctl start postroad`,
  )
  t.equal(
    (await sh('systemctl is-active postroad')).trim(),
    'active',
    'ready, as the service itself has said',
  )
  const [workspace] = JSON.parse(await sh('postroad workspace list --json')) as { id: string }[]
  await sh(`postroad domain add sender.test --vouch --workspace ${workspace!.id}`)
  const key = (await sh(`postroad key create --workspace ${workspace!.id} --name first 2>/dev/null`)).trim()
  await sh(`echo ${key} >/root/key`)
  await sh(sendTo('ann@one.test'))
  await sh(
    'for i in $(seq 100); do postroad capture list --json >/root/caught; if grep -q ann@one.test /root/caught; then exit 0; fi; sleep 0.1; done; exit 1',
  )
  t.match(await sh('man -w postroad'), /postroad\.1/)
  t.notMatch(await sh('journalctl -u postroad --no-pager'), key, 'no key stands in the journal')
  t.match(await sh('journalctl -t postroad --no-pager'), /server started/, 'its lines bear its name')
})

t.test('links in mail are answered where they lead, on IPv4 and IPv6', async t => {
  for (const address of ['127.0.0.1', '[::1]']) {
    t.match(await sh(`curl -sk -o /dev/null -w '%{http_code}' https://${address}/u/unknown`), /^[24]\d\d$/)
    t.match(
      await sh(`curl -s -o /dev/null -w '%{redirect_url}' http://${address}/u/x`),
      'https://mail.postroad.test/u/x',
    )
  }
})

t.test('a reload takes the configuration over, on a Debian without procps', async t => {
  t.equal(await sh('command -v /bin/kill || true'), '')
  await sh(`printf '[log]\nlevel = "debug"\n' >>/etc/postroad/postroad.toml; systemctl reload postroad`)
  await sh(
    'for i in $(seq 100); do if journalctl -u postroad --no-pager | grep -q "configuration reloaded"; then exit 0; fi; sleep 0.1; done; exit 1',
  )
  t.equal((await sh('systemctl is-active postroad')).trim(), 'active')
})

t.test('journald keeps every line of a burst', async t => {
  // A unit that only writes, with the limits of ours; journald's own limit is 10,000 to 60,000 lines, by the room on the disk. It reads a
  // unit's limits a moment after the first line, as a service that runs for long finds them.
  await sh(
    '(echo "[Service]"; echo Type=oneshot; echo SyslogIdentifier=burst; grep ^LogRateLimit /lib/systemd/system/postroad.service || true; ' +
      'echo "ExecStart=/bin/sh -c \\"echo start; sleep 3; seq 120000\\"") >/run/systemd/system/burst.service; ' +
      'systemctl daemon-reload; systemctl start burst; journalctl --sync',
  )
  t.equal((await sh('journalctl -t burst --no-pager -o cat | grep -c "^[0-9]"')).trim(), '120000')
})

t.test('an invalid configuration is reported once, without restart loop', async t => {
  await sh(
    `cp /etc/postroad/postroad.toml /root/right.toml; echo 'frobnicate = 1' >>/etc/postroad/postroad.toml`,
  )
  await t.rejects(sh('systemctl restart postroad'))
  t.equal(
    (await sh('systemctl show -p Result,ExecMainStatus,NRestarts --value postroad'))
      .trim()
      .split('\n')
      .sort()
      .join(' '),
    '0 2 exit-code',
  )
  await sh('cat /root/right.toml >/etc/postroad/postroad.toml; systemctl restart postroad')
})

t.test('the nightly backup runs as its own unit', async t => {
  await sh('systemctl start postroad-backup.service')
  t.match(await sh('ls /var/backups/postroad'), /^postroad-.*\.db$/m)
  t.match(await sh('systemctl list-timers --no-pager'), /postroad-backup/)
})

t.test('an upgrade keeps the queue and the configuration, and starts the new program', async t => {
  await sh(
    `sed -i 's/^capture = true/capture = false/' /etc/postroad/postroad.toml; systemctl restart postroad`,
  )
  for (const name of ['dan', 'eve', 'fay']) await sh(sendTo(`${name}@two.test`))
  const before = (await sh('systemctl show -p MainPID --value postroad')).trim()
  await sh('cd /root; DEBIAN_FRONTEND=noninteractive apt-get install -y --reinstall ./postroad.deb')
  t.equal((await sh('systemctl is-active postroad')).trim(), 'active')
  t.not((await sh('systemctl show -p MainPID --value postroad')).trim(), before)
  t.match(await sh('grep ^hostname /etc/postroad/postroad.toml'), /mail\.postroad\.test/)
  const queued = JSON.parse(await sh('postroad queue list --json')) as unknown[]
  t.equal(queued.length, 3)
})

t.test('an upgrade whose own configuration changed asks nothing and keeps the edited one', async t => {
  const edited = await sh('cat /etc/postroad/postroad.toml')
  await repackage('9.0.0', root => appendFileSync(join(root, 'usr/share/postroad/postroad.toml'), '# new\n'))
  await upgrade()
  t.equal(await sh('cat /etc/postroad/postroad.toml'), edited)
  t.equal((await sh('systemctl is-active postroad')).trim(), 'active')
})

t.test('so does one from a package that had it as a conffile', async t => {
  await repackage('9.1.0', root => {
    writeFileSync(join(root, 'etc/postroad/postroad.toml'), 'hostname = "mail.example.com"\n')
    writeFileSync(join(root, 'DEBIAN/conffiles'), '/etc/postroad/postroad.toml\n')
  })
  await upgrade('--force-confold')
  const edited = await sh('cat /etc/postroad/postroad.toml')
  await repackage('9.2.0')
  await upgrade()
  t.equal(await sh('cat /etc/postroad/postroad.toml'), edited)
  t.equal((await sh('systemctl is-active postroad')).trim(), 'active')
})

t.test('what an administrator has disabled stays disabled', async t => {
  await sh(
    'systemctl disable postroad; cd /root; DEBIAN_FRONTEND=noninteractive apt-get install -y --reinstall --allow-downgrades ./postroad.deb',
  )
  t.equal((await sh('systemctl is-enabled postroad || true')).trim(), 'disabled')
})

t.test('a removal stops it, a purge leaves mail and all that is needed to read it', async t => {
  // Secrets where earlier examples had them, and one that nobody may lose: the key inside the configuration.
  const key = (await sh('head -c 32 /dev/urandom | base64')).trim()
  await sh(
    `printf '[secrets]\nkey = "${key}"\n' >>/etc/postroad/postroad.toml; mkdir -p /etc/postroad/tls; echo cert >/etc/postroad/tls/cert.pem; systemctl restart postroad`,
  )
  const configuration = await sh('cat /etc/postroad/postroad.toml')
  await sh('DEBIAN_FRONTEND=noninteractive apt-get remove -y postroad')
  t.equal(await sh('cat /proc/[0-9]*/comm 2>/dev/null | grep -x postroad || true'), '')
  t.match(await sh('ls /etc/postroad'), /^postroad\.toml$/m)
  const told = await sh('DEBIAN_FRONTEND=noninteractive apt-get purge -y postroad')
  t.match(told, /left in \/var\/lib\/postroad, their configuration in .*postroad\.toml\.purged/)
  t.match(told, /\/etc\/postroad is not empty and is left: tls/)
  t.equal(
    await sh(
      'ls -d /etc/postroad/postroad.toml /usr/bin/postroad /lib/systemd/system/postroad.service /etc/systemd/system/*.wants/postroad* 2>/dev/null || true',
    ),
    '',
  )
  t.match(await sh('ls /var/lib/postroad'), /postroad\.db/)
  t.equal(await sh('cat /etc/postroad/tls/cert.pem'), 'cert\n')
  t.equal(await sh('cat /var/lib/postroad/postroad.toml.purged'), configuration)
})

t.test('installed again with the configuration it left, it reads its data', async t => {
  t.match(await sh('cd /root; DEBIAN_FRONTEND=noninteractive apt-get install -y ./postroad.deb'), /purged/)
  await sh('cp /var/lib/postroad/postroad.toml.purged /etc/postroad/postroad.toml; systemctl start postroad')
  t.match(await sh('postroad message list --to ann@one.test --json'), /ann@one\.test/)
})

t.test('a purge before anything was configured leaves nothing', async t => {
  await sh(
    'systemctl stop postroad; DEBIAN_FRONTEND=noninteractive apt-get purge -y postroad; rm -r /var/lib/postroad /etc/postroad /var/backups/postroad',
  )
  await sh(
    'cd /root; DEBIAN_FRONTEND=noninteractive apt-get install -y ./postroad.deb; DEBIAN_FRONTEND=noninteractive apt-get purge -y postroad',
  )
  t.equal(await sh('ls -d /etc/postroad /var/lib/postroad /var/backups/postroad 2>/dev/null || true'), '')
})

t.test('the package has no faults that Debian knows of', async t => {
  const found = execFileSync('lintian', ['--allow-root', '--fail-on', 'none', deb], { encoding: 'utf8' })
  t.notMatch(found, /^E: /m)
})
