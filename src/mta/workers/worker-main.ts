/**
 * The program of a delivery thread.
 *
 * Started by `worker-pool.ts`, never imported. Builds, signs and delivers what it is given; what goes wrong beyond that
 * ends the thread, and the server, which is told of it, starts another.
 */
import { ownThread, stepAside } from '../../world/threads.js'
import { openWorkerAgent, type AgentOptions } from './worker-agent.js'
import { serveJobs } from './worker-jobs.js'

stepAside()
const thread = ownThread()
serveJobs(thread, openWorkerAgent(thread.options as AgentOptions))
