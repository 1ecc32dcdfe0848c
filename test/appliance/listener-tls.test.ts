/** What listeners agree to in TLS: with an RSA certificate, since only such a one allows suites without forward secrecy at all. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { connect } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import t from 'tap'
import { listenHttps } from '../../src/world/net/listen.js'
import { systemClock } from '../../src/world/time/clock.js'
import { openTestAppliance } from '../support/program/appliance.js'

const FILES = {
  cert: resolve('test/fixtures/tls/rsa.example.cert.pem'),
  key: resolve('test/fixtures/tls/rsa.example.key.pem'),
}
const SECRET_FOR_EVER = ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-CHACHA20-POLY1305', 'ECDHE-RSA-AES256-SHA']
const NOT_FOR_EVER = ['AES128-SHA', 'AES256-SHA256', 'AES128-GCM-SHA256', 'AES256-GCM-SHA384']

/** @returns the suite that TLS 1.2 settles on, or undefined if no suite is shared */
async function settledOn(port: number, ciphers: string, isStartTls: boolean): Promise<string | undefined> {
  const options: ConnectionOptions = { rejectUnauthorized: false, ciphers, maxVersion: 'TLSv1.2' }
  const socket = connect({ host: '127.0.0.1', port })
  if (isStartTls)
    for (const command of ['', 'EHLO client.example\r\n', 'STARTTLS\r\n']) {
      if (command !== '') socket.write(command)
      await once(socket, 'data')
    }
  else await once(socket, 'connect')
  const secured = connectTls({ ...options, socket })
  try {
    await once(secured, 'secureConnect')
    return secured.getCipher().name
  } catch {
    return undefined
  } finally {
    secured.destroy()
    socket.destroy()
  }
}

t.test('no listener accepts a cipher suite without forward secrecy', async t => {
  const { addresses } = await openTestAppliance(t, {
    toml: `[inbound]\ngreeting_delay = "0"\n[tls]\ncert = "${FILES.cert}"\nkey = "${FILES.key}"`,
  })
  const pair = { cert: readFileSync(FILES.cert, 'utf8'), key: readFileSync(FILES.key, 'utf8') }
  const saying = {
    handle: async () => {},
    answerFault: () => ({ status: 503, headers: {}, body: '' }),
  }
  const limits = { connections: 100, connectionsPerAddress: 100 }
  let shown = pair
  const https = await listenHttps({ host: '127.0.0.1', port: 0 }, saying, limits, systemClock, () => shown)
  t.teardown(() => https.close(0))
  const tried = async () => {
    for (const [listener, port, isStartTls] of [
      ['465', addresses.submissionTls[0]?.port, false],
      ['587', addresses.submission[0]?.port, true],
      ['25', addresses.inbound[0]?.port, true],
      ['HTTPS', https.address.port, false],
    ] as const) {
      for (const suite of SECRET_FOR_EVER)
        t.equal(await settledOn(port ?? 0, suite, isStartTls), suite, `${listener}: ${suite}`)
      for (const suite of NOT_FOR_EVER)
        t.equal(await settledOn(port ?? 0, suite, isStartTls), undefined, `${listener}: ${suite}`)
    }
  }
  await tried()
  // Another certificate is another context.
  shown = { ...pair }
  await tried()
})
