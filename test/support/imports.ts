/** Imports without a server: files received, and worked off to their end. */
import type { Import } from '../../src/audience/transfer/import.js'
import { findImportBySeq } from '../../src/audience/transfer/import-store.js'
import type { ImporterParts } from '../../src/audience/transfer/active-import.js'
import { Importer } from '../../src/audience/transfer/importer.js'
import { receiveFile, type UploadOptions } from '../../src/audience/transfer/receive-file.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { SHELL } from '../../src/core/actor.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { spawnThread } from '../../src/world/threads.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { NOW } from './mailroom.js'

const RECEIVING = { isSandbox: false, actor: SHELL }
export const NEVER = new AbortController().signal

export function partsOf(database: Database): ImporterParts {
  let ids = 0
  const newId = () => uuidv7(NOW, Buffer.from(String(++ids).padStart(10, '0')))
  return {
    database,
    clock: new FakeClock(),
    newId,
    onEvents: () => {},
    spawn: spawnThread,
    log: new FakeLog(),
  }
}

export async function receive(
  parts: ImporterParts,
  text: string,
  wishes: UploadOptions = {},
  workspaceId = 'w1',
): Promise<number> {
  return receiveOctets(parts, Buffer.from(text), wishes, workspaceId)
}

export async function receiveOctets(
  parts: ImporterParts,
  octets: Buffer,
  wishes: UploadOptions = {},
  workspaceId = 'w1',
): Promise<number> {
  async function* pieces() {
    for (let at = 0; at < octets.length; at += 50_000) yield octets.subarray(at, at + 50_000)
  }
  return (await receiveFile(parts, { ...RECEIVING, workspaceId }, pieces(), () => wishes)).seq
}

export async function imported(
  parts: ImporterParts,
  text: string,
  wishes: UploadOptions = {},
  workspaceId = 'w1',
): Promise<Import> {
  const seq = await receive(parts, text, wishes, workspaceId)
  await new Importer(parts).finish(seq, NEVER)
  return (await findImportBySeq(parts.database.reader, seq))!
}
