/**
 * Reads the journal of visits from where counting stands, some time ahead of what is counted, and deletes what was.
 *
 * Called by `visit-counter.ts` alone. A file that is not written to any more and was read to its end is done with; what stands behind the
 * last line break of it is what a crash broke off, and was answered to nobody.
 * Fails: rejects with the system's error.
 */
import { open, rm } from 'node:fs/promises'
import { journalFile, journalFiles, type JournalPlace, type VisitJournal } from './visit-journal.js'
import { readVisitLine, type Visit } from './visit.js'

/** A visit, and where its line ends. */
export interface ReadVisit {
  readonly visit: Visit
  readonly end: JournalPlace
}

const MOST_AT_ONCE = 64 * 1_024
const LINE_BREAK = 0x0a

export class VisitReader {
  private readonly folder: string
  private readonly journal: VisitJournal
  private place: JournalPlace

  /** @param place up to where visits were counted */
  constructor(folder: string, journal: VisitJournal, place: JournalPlace) {
    this.folder = folder
    this.journal = journal
    this.place = place
  }

  /** @returns the next visits, 64 KB of lines at most; none where there are none yet */
  async read(): Promise<readonly ReadVisit[]> {
    for (;;) {
      const isOpen = this.journal.isOpen(this.place.file)
      const found = await this.readLines(isOpen)
      if (found.length > 0 || isOpen || !(await this.toNextFile())) return found
    }
  }

  /** Deletes the files that end before. @param counted up to where visits were counted */
  async deleteBefore(counted: JournalPlace): Promise<void> {
    for (const file of await journalFiles(this.folder)) {
      if (file >= counted.file) return
      await rm(journalFile(this.folder, file), { force: true })
      this.journal.forget(file)
    }
  }

  private async toNextFile(): Promise<boolean> {
    const next = (await journalFiles(this.folder)).find(file => file > this.place.file)
    if (next === undefined) return false
    this.place = { file: next, octets: 0 }
    return true
  }

  private async readLines(isOpen: boolean): Promise<ReadVisit[]> {
    // Of the file in hand no more than is on disk.
    const known = isOpen ? this.journal.end.octets - this.place.octets : MOST_AT_ONCE
    if (known <= 0) return []
    const octets = await readOctets(
      journalFile(this.folder, this.place.file),
      this.place.octets,
      Math.min(known, MOST_AT_ONCE),
    )
    const visits: ReadVisit[] = []
    let from = 0
    for (let at = octets.indexOf(LINE_BREAK); at >= 0; at = octets.indexOf(LINE_BREAK, from)) {
      const end = { file: this.place.file, octets: this.place.octets + at + 1 }
      const visit = readVisitLine(octets.toString('utf8', from, at))
      if (visit) visits.push({ visit, end })
      from = at + 1
    }
    this.place = { ...this.place, octets: this.place.octets + from }
    return visits
  }
}

/** @returns none where the file is gone: somebody restored an older database, or deleted it */
async function readOctets(path: string, from: number, count: number): Promise<Buffer> {
  const handle = await open(path, 'r').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  if (!handle) return Buffer.alloc(0)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(count), 0, count, from)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}
