/**
 * Preloaded into the server under test and into each of its threads (NODE_OPTIONS): leaves a CPU profile of every thread in the
 * folder named by BENCH_PROFILES once the process is sent SIGUSR2. `--cpu-prof` leaves one of the main thread alone, since the others
 * are terminated.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { BroadcastChannel, isMainThread, threadId } from 'node:worker_threads'

const folder = process.env['BENCH_PROFILES'] ?? ''
const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.start')

const channel = new BroadcastChannel('thread-profiles')
channel.onmessage = write
channel.unref()
if (isMainThread)
  process.on('SIGUSR2', () => {
    channel.postMessage('write')
    write()
  })

function write(): void {
  session.post('Profiler.stop', (error, result) => {
    if (error) throw error
    mkdirSync(folder, { recursive: true })
    writeFileSync(`${folder}/thread-${threadId}.cpuprofile`, JSON.stringify(result.profile))
  })
}
