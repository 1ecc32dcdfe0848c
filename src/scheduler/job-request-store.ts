/**
 * SQL of requests to run a job, by which a node has the node that runs the jobs start one.
 *
 * The node that asks inserts a request, waits for the answer and deletes it; those that it left behind are deleted after a while.
 */
import type { Queries } from '../db/database.js'

interface JobRequestRow {
  id: string
  /** Of the job. */
  name: string
  requested_at: number
  /** Null until the node that runs the jobs has answered. */
  answer: string | null
}

declare module '../db/tables.js' {
  interface Tables {
    job_requests: JobRequestRow
  }
}

export async function insertRequest(
  db: Queries,
  { id, name, requestedAt }: { readonly id: string; readonly name: string; readonly requestedAt: number },
): Promise<void> {
  await db.insertInto('job_requests').values({ id, name, requested_at: requestedAt, answer: null }).execute()
}

/** Those without an answer, oldest first. */
export async function listRequests(
  db: Queries,
  limit: number,
): Promise<readonly { readonly id: string; readonly name: string }[]> {
  return db
    .selectFrom('job_requests')
    .select(['id', 'name'])
    .where('answer', 'is', null)
    .orderBy('requested_at')
    .orderBy('id')
    .limit(limit)
    .execute()
}

export async function answerRequest(db: Queries, id: string, answer: string): Promise<void> {
  await db.updateTable('job_requests').set({ answer }).where('id', '=', id).execute()
}

/** @returns undefined while there is none */
export async function findAnswer(db: Queries, id: string): Promise<string | undefined> {
  const row = await db.selectFrom('job_requests').select('answer').where('id', '=', id).executeTakeFirst()
  return row?.answer ?? undefined
}

/** @returns its answer, if there was one */
export async function deleteRequest(db: Queries, id: string): Promise<string | undefined> {
  const row = await db.deleteFrom('job_requests').where('id', '=', id).returning('answer').executeTakeFirst()
  return row?.answer ?? undefined
}

/** @param before ms since epoch UTC, by the clock of whichever node asked */
export async function deleteOldRequests(db: Queries, before: number): Promise<void> {
  await db.deleteFrom('job_requests').where('requested_at', '<', before).execute()
}
