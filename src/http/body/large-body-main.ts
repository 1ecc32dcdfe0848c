/** Entry point of the thread that checks large request bodies. Started by `large-bodies.ts`, never imported. */
import type { TSchema } from 'typebox'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { ownThread, stepAside } from '../../world/threads.js'
import { bodyValidator } from '../validate.js'
import { bodyDigest } from './body-digest.js'
import { parseScanned } from './json.js'
import type { LargeBodyResult, LargeBodyTask } from './large-bodies.js'

const validators = new Map<string, (value: unknown) => unknown>()

function validatorOf(schema: string): (value: unknown) => unknown {
  const known = validators.get(schema)
  if (known) return known
  const validate = bodyValidator(JSON.parse(schema) as TSchema)
  validators.set(schema, validate)
  return validate
}

function check({ id, octets, bounds, schema, wantsDigest }: LargeBodyTask): LargeBodyResult {
  try {
    const body = Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)
    const { scanned, value } = parseScanned(body, bounds)
    const validated = validatorOf(schema)(value)
    return { id, octets, scanned, digest: wantsDigest ? bodyDigest(validated) : undefined }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const { code, message, path } = error
    return { id, fault: { code, message, ...given({ path }) } }
  }
}

stepAside()
const thread = ownThread()
thread.listen(message => {
  const result = check(message as LargeBodyTask)
  thread.post(result, 'octets' in result ? [result.octets.buffer as ArrayBuffer] : [])
})
