/** The generated configuration files: they are true, complete, and what is on disk is what the schema says. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { commentedToml, referenceMarkdown, showConfig } from '../../src/config/generate.js'
import { environmentKeys, knownKeys } from '../../src/config/key-names.js'
import { loadConfig } from '../../src/config/load.js'
import { CONFIG_SCHEMA } from '../../src/appliance/resources.js'

function load(toml: string) {
  return loadConfig({ schema: CONFIG_SCHEMA, file: 'postroad.toml', env: {}, readFile: () => toml })
}

t.test('the files on disk are what the schema generates (node build/src/cli/write-generated.js)', async t => {
  t.equal(readFileSync('config/postroad.toml', 'utf8'), commentedToml(CONFIG_SCHEMA))
  t.equal(readFileSync('config/REFERENCE.md', 'utf8'), referenceMarkdown(CONFIG_SCHEMA))
})

t.test('the commented file loads unchanged and sets only the defaults', async t => {
  t.same(load(commentedToml(CONFIG_SCHEMA)).config, load('hostname = "mail.example.com"').config)
})

t.test('every line of the commented file is valid when uncommented', async t => {
  const withoutExamples = commentedToml(CONFIG_SCHEMA)
    .split('\n\n')
    .filter(block => !block.includes('#[['))
    .join('\n\n')
  const uncomment = (toml: string) => toml.replace(/^#(?=\[\[|[a-z_]+ = )/gm, '')
  t.same(load(uncomment(withoutExamples)).config, load('hostname = "mail.example.com"').config)
  t.match(load(uncomment(commentedToml(CONFIG_SCHEMA))).config.mta.routes, [
    { domain: '*.corp.example', host: '10.0.0.5' },
  ])
})

t.test(
  'every key is in the commented file and in the reference, with a description and its variable',
  async t => {
    const toml = commentedToml(CONFIG_SCHEMA)
    const reference = referenceMarkdown(CONFIG_SCHEMA)
    for (const { path, node } of knownKeys(CONFIG_SCHEMA)) {
      const name = path.join('.')
      t.ok(node.description.length > 5, `${name} is described`)
      t.match(
        toml,
        new RegExp(`^#?(\\[\\[${name}\\]\\]|${path.at(-1) ?? ''} = .*)$`, 'm'),
        `${name} in postroad.toml`,
      )
    }
    for (const variable of environmentKeys(CONFIG_SCHEMA).keys())
      t.match(reference, `\`${variable}\``, variable)
  },
)

t.test('no two keys share an environment variable', async t => {
  t.equal(environmentKeys(CONFIG_SCHEMA).size, knownKeys(CONFIG_SCHEMA).filter(key => !key.inList).length)
})

t.test(
  'the output of config show has defaults and derived values, hides secrets, and loads again',
  async t => {
    const loaded = load(`
    hostname = "mail.example.com"
    [[mta.routes]]
    domain = "*"
    host = "10.0.0.5"
    tls = "verify"
    username = "relay"
    password = "hunter2"
  `)
    const shown = showConfig(CONFIG_SCHEMA, loaded)
    t.notMatch(shown, /hunter2/)
    t.match(shown, 'dkim_zone = "dkim.mail.example.com"')
    const { mta, ...rest } = load(shown).config
    const { mta: mtaBefore, ...restBefore } = loaded.config
    t.same(rest, restBefore)
    t.same({ ...mta, routes: [] }, { ...mtaBefore, routes: [] })
    t.match(mta.routes, [{ host: '10.0.0.5', username: 'relay', password: /^\*+$/ }])
  },
)

t.test('the packaged configuration serves the links in mail on 443 and sets five keys', async t => {
  const toml = readFileSync('config/starter.toml', 'utf8')
  const { config } = load(toml)
  t.match(config.http, {
    publicListenTls: [{ host: '::', port: 443 }],
    redirectListen: [{ host: '::', port: 80 }],
  })
  t.equal(config.publicUrl, `https://${config.hostname}`)
  t.equal(toml.match(/^[a-z_]+ = /gm)?.length, 5)
})

t.test('the development configuration listens on loopback only and captures all mail', async t => {
  const { config } = load(readFileSync('config/dev.toml', 'utf8'))
  const { http, submission, inbound } = config
  t.same(
    [...http.listen, ...submission.listen, ...submission.listenTls, ...inbound.listen],
    [8025, 2587, 2525].map(port => ({ host: '127.0.0.1', port })),
  )
  t.match(config, { dataDir: './data', publicUrl: 'http://127.0.0.1:8025', mta: { capture: true } })
})
