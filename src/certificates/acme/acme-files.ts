/**
 * Files of an ACME account and its certificate in the data folder, in one directory per ACME server.
 *
 * Used by `renewal.ts`. Separate directories keep a CA's staging server from its production one. Files are readable only by their owner and
 * replaced atomically by renaming.
 * Reading a missing or broken file returns nothing; writing rejects with the file system's error.
 */
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import type { PemPair } from '../../world/tls/self-signed-certificate.js'

const State = Type.Object({
  /** URL of the account; null before there is one. */
  account: Type.Union([Type.String(), Type.Null()]),
  /** Moments of the attempts of the last day, ms since epoch UTC. */
  attempts: Type.Array(Type.Number()),
  /** In a row. */
  failures: Type.Integer(),
  nextAttemptAt: Type.Number(),
  /** Why the last attempt failed; null if it succeeded. */
  fault: Type.Union([Type.String(), Type.Null()]),
  /** The CA's last suggestion, and the certificate it is for. */
  suggested: Type.Union([
    Type.Object({ id: Type.String(), at: Type.Number(), askAgainAt: Type.Number() }),
    Type.Null(),
  ]),
})
export type AcmeState = Static<typeof State>

const FRESH: AcmeState = {
  account: null,
  attempts: [],
  failures: 0,
  nextAttemptAt: 0,
  fault: null,
  suggested: null,
}

const PRIVATE = 0o600

export class AcmeFiles {
  readonly folder: string

  /** @param directory URL of the server's directory */
  constructor(dataDir: string, directory: string) {
    const { host, pathname } = new URL(directory)
    const name = `${host}${pathname}`.replace(/[^a-z0-9.-]+/gi, '-').replace(/^[.-]+|-+$/g, '')
    this.folder = join(dataDir, 'acme', name)
  }

  get certificateFile(): string {
    return join(this.folder, 'certificate.pem')
  }

  async readState(): Promise<AcmeState> {
    const text = await this.read('state.json')
    try {
      const parsed: unknown = JSON.parse(text ?? '')
      return Value.Check(State, parsed) ? parsed : FRESH
    } catch {
      return FRESH
    }
  }

  async writeState(state: AcmeState): Promise<void> {
    await this.write('state.json', `${JSON.stringify(state, null, 2)}\n`)
  }

  /** PEM. */
  async readAccountKey(): Promise<string | undefined> {
    return this.read('account-key.pem')
  }

  async writeAccountKey(key: string): Promise<void> {
    await this.write('account-key.pem', key)
  }

  async readCertificate(): Promise<PemPair | undefined> {
    const text = await this.read('certificate.pem')
    const [key] = /-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----\n?/s.exec(text ?? '') ?? []
    return text === undefined || key === undefined ? undefined : { key, cert: text.replace(key, '') }
  }

  /** Key and chain in one file, so that they always match. */
  async writeCertificate({ key, cert }: PemPair): Promise<void> {
    await this.write('certificate.pem', `${key.trimEnd()}\n${cert}`)
  }

  private async read(name: string): Promise<string | undefined> {
    try {
      return await readFile(join(this.folder, name), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  private async write(name: string, text: string): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    const file = join(this.folder, name)
    const handle = await open(`${file}.new`, 'w', PRIVATE)
    try {
      await handle.chmod(PRIVATE)
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(`${file}.new`, file)
  }
}
