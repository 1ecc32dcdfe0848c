/** docs/nodes.md, compose.yml and haproxy.cfg: configurations that load, and that name the same ports and load balancers. */
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { CONFIG_SCHEMA } from '../../src/appliance/resources.js'
import type { Config } from '../../src/config/config.js'
import { loadConfig } from '../../src/config/load.js'

const PAGE = readFileSync('docs/nodes.md', 'utf8')
const HAPROXY = readFileSync('docs/haproxy.cfg', 'utf8')

function load(t: Test, toml: string, env: Readonly<Record<string, string>> = {}): Config {
  const { config, keysWithoutEffect } = loadConfig({
    schema: CONFIG_SCHEMA,
    file: 'postroad.toml',
    env,
    readFile: () => toml,
  })
  t.same(keysWithoutEffect, [])
  return config
}

const blocks = [...PAGE.matchAll(/^```toml\n(.*?)^```/gms)].map(([, toml = '']) => toml)
/** Of the ports that HAProxy takes, those of the nodes. */
const [inbound, http, https, submissionTls, submission] = [25, 80, 443, 465, 587].map(port =>
  Number(new RegExp(`bind :::${port} v4v6\\n(?:.*\\n)*?.*"\\$\\{NODE1\\}:(\\d+)"`).exec(HAPROXY)?.[1]),
)

/** Listens where HAProxy expects it, behind the load balancers alone. */
function checkPlace(t: Test, config: Config, proxies: readonly string[]): void {
  const ports = (listen: readonly { readonly port: number }[]) => listen.map(({ port }) => port)
  t.same(ports(config.http.listenTls), [https])
  t.same(ports(config.http.redirectListen), [http])
  t.same(ports(config.submission.listen), [submission])
  t.same(ports(config.submission.listenTls), [submissionTls])
  t.same(ports(config.inbound.listen), [inbound])
  for (const { proxyProtocolFrom } of [config.http, config.submission, config.inbound])
    t.same(proxyProtocolFrom, proxies)
  t.ok(config.inbound.nodeNames.includes(config.hostname))
  t.match(config, {
    publicUrl: 'https://mail.example.com',
    inbound: { reportDomain: 'mail.example.com' },
    mta: { returnPathDomain: 'bounce.mail.example.com' },
    dns: { dkimZone: 'dkim.mail.example.com' },
  })
}

t.test('every configuration on the page loads', async t => {
  t.ok(blocks.length >= 3)
  const shared = { POSTROAD_DATABASE_URL: 'postgres://db.example.com/postroad' }
  for (const toml of blocks)
    load(t, /^hostname/m.test(toml) ? toml : `hostname = "mx1.example.com"\n${toml}`, shared)
})

t.test('the node of the recipe is where HAProxy looks for it', async t => {
  const recipe = blocks.find(toml => toml.includes('listen_tls')) ?? ''
  checkPlace(t, load(t, recipe), ['10.0.0.11/32', '10.0.0.12/32'])
})

t.test('the nodes of compose.yml are where HAProxy looks for them, and differ in their hostname', async t => {
  const compose = readFileSync('docs/compose.yml', 'utf8')
  const image = readFileSync('packaging/docker/postroad.toml', 'utf8')
  const [, common = ''] = /^x-environment:.*\n((?: .*\n)+)/m.exec(compose) ?? []
  const service = (name: string) => new RegExp(`^  ${name}:\\n((?:    .*\\n)+)`, 'm').exec(compose)?.[1] ?? ''
  const addressOf = (name: string) => /ipv4_address: ([\d.]+)/.exec(service(name))?.[1]
  const hostnames = ['node1', 'node2'].map(name => {
    const config = load(t, image, settingsIn(common + service(name)))
    checkPlace(t, config, [`${addressOf('haproxy')}/32`])
    return config.hostname
  })
  t.same(hostnames, ['mx1.example.com', 'mx2.example.com'])
  t.match(service('haproxy'), `NODE1: ${addressOf('node1')}, NODE2: ${addressOf('node2')} `)
})

/** Without those that Compose takes from the environment. */
function settingsIn(yaml: string): Record<string, string> {
  const lines = yaml.matchAll(/^ +(POSTROAD_\w+): (.*)$/gm)
  return Object.fromEntries(
    [...lines]
      .map(
        ([, name = '', value = '']) =>
          [name, value.replace(/^'(.*)'$/, '$1').replace(/\$\{.*\}/, 'filled-in')] as const,
      )
      .filter(([, value]) => value !== 'filled-in'),
  )
}
