/**
 * Passwords of operators, hashed with scrypt (RFC 7914) and stored as PHC strings, `$scrypt$ln=16,r=8,p=1$<salt>$<hash>`, so that the
 * cost can be raised later without locking anybody out.
 */
import { scrypt, timingSafeEqual } from 'node:crypto'
import { AppError } from '../../core/errors.js'
import { FairGate } from '../../core/fair-shares.js'
import { currentHolder } from '../../core/holder.js'
import type { Random } from '../../world/random.js'
import type { ScryptCost } from '../../world/world.js'

/** 64 MiB and about 0.2 s of one core per hash. */
const COST: ScryptCost = { ln: 16, r: 8, p: 1 }
const SALT_BYTES = 16
const HASH_BYTES = 32

export const PASSWORD_LENGTH = { minLength: 12, maxLength: 256 } as const

/** Hashes at a time. More would exhaust memory and occupy the thread pool that also syncs the database log. */
const MAX_CONCURRENT = 2
const MAX_WAITING = 100

export class Passwords {
  private readonly random: Random
  private readonly cost: ScryptCost
  private readonly gate = new FairGate(MAX_CONCURRENT, MAX_WAITING, tooMany)
  private decoy: Promise<string> | undefined

  /** @param cost lower in tests */
  constructor(random: Random, cost: ScryptCost = COST) {
    this.random = random
    this.cost = cost
  }

  /** @returns a PHC string @throws AppError unavailable if too many are being hashed */
  async hash(password: string): Promise<string> {
    const salt = this.random.bytes(SALT_BYTES)
    return format(this.cost, salt, await this.derive(password, salt, this.cost))
  }

  /**
   * Takes as long for an account without a password, or without an account, as for a wrong password.
   *
   * @param stored PHC string; undefined never matches
   * @throws AppError unavailable if too many are being hashed
   */
  async matches(stored: string | undefined, password: string): Promise<boolean> {
    // Made in either case, so that the first unknown account does not cost a hash more than a known one.
    const decoy = await this.decoyHash()
    const { cost, salt, hash } = parse(stored ?? decoy)
    const isEqual = timingSafeEqual(await this.derive(password, salt, cost), hash)
    return isEqual && stored !== undefined
  }

  /** Whether the hash was made with other parameters than today's; replace it at the next successful sign-in. */
  isOutdated(stored: string): boolean {
    const { cost } = parse(stored)
    return cost.ln !== this.cost.ln || cost.r !== this.cost.r || cost.p !== this.cost.p
  }

  private decoyHash(): Promise<string> {
    this.decoy ??= this.hash(this.random.bytes(HASH_BYTES).toString('base64')).catch((error: unknown) => {
      this.decoy = undefined
      throw error
    })
    return this.decoy
  }

  /** Clients of one address wait for each other, so guesses at accounts from there keep nobody else out. */
  private derive(password: string, salt: Buffer, { ln, r, p }: ScryptCost): Promise<Buffer> {
    const options = { N: 2 ** ln, r, p, maxmem: 256 * 2 ** ln * r }
    return this.gate.run(
      currentHolder(),
      () =>
        new Promise<Buffer>((resolve, reject) => {
          // NFC, so that a password typed on another keyboard or system has the same octets (RFC 8265 §4.2).
          scrypt(password.normalize('NFC'), salt, HASH_BYTES, options, (error, key) =>
            error ? reject(error) : resolve(key),
          )
        }),
    )
  }
}

function tooMany(): AppError {
  return new AppError('unavailable', 'too many sign-ins at once; try again in a few seconds', {
    retryAfterMs: 5_000,
  })
}

function format({ ln, r, p }: ScryptCost, salt: Buffer, hash: Buffer): string {
  return `$scrypt$ln=${ln},r=${r},p=${p}$${unpadded(salt)}$${unpadded(hash)}`
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/={1,2}$/, '')
}

function parse(stored: string): { cost: ScryptCost; salt: Buffer; hash: Buffer } {
  const match = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([\w+/]+)\$([\w+/]+)$/.exec(stored)
  if (!match) throw new Error('a stored password hash is not a scrypt PHC string')
  const [, ln, r, p, salt = '', hash = ''] = match
  return {
    cost: { ln: Number(ln), r: Number(r), p: Number(p) },
    salt: Buffer.from(salt, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  }
}
