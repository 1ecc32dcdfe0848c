/**
 * Wires the server's certificate, from files, ACME or self-signed, and the jobs that renew it.
 *
 * Part of the composition root, opened by `server.ts` before the listeners. Rejects with an Error naming files that cannot be used.
 */
import { readFile } from 'node:fs/promises'
import { openResolver, type Appliance } from './appliance.js'
import { Challenges } from '../certificates/acme/challenges.js'
import { acmeNames, type NamedNode } from '../certificates/acme/names.js'
import { Renewal } from '../certificates/acme/renewal.js'
import { certificateStanding, type CertificateStanding } from '../certificates/standing.js'
import { followStored } from '../certificates/acme/follow-stored.js'
import { watchCertificate, watchOnOtherNodes } from '../certificates/watch-certificate.js'
import type { Job } from '../scheduler/scheduler.js'
import { openHostLookup } from '../world/dns/host-lookup.js'
import { openHttpClient } from '../world/net/fetch.js'
import { openTlsCertificate, type TlsCertificate } from '../world/tls/tls-certificate.js'

export interface Certificates {
  readonly certificate: TlsCertificate
  /** Undefined without ACME. */
  readonly challenges: Challenges | undefined
  readonly jobs: readonly Job[]
  standing(): CertificateStanding
  /** Undefined without ACME. */
  readonly acme: Pick<Renewal, 'status' | 'want'> | undefined
  /** Where nodes share the database. @param isRunningJobs whether this node currently runs the jobs @returns stops it */
  follow(isRunningJobs: () => boolean): () => void
  /** Reloads files, and makes ACME retry without waiting. @throws Error naming the file */
  reload(): Promise<void>
}

export const RENEWAL_JOB = 'renew-certificate'

/** @param nodes all that run */
export async function openCertificates(
  appliance: Pick<Appliance, 'config' | 'world' | 'database' | 'box'>,
  nodes: () => readonly NamedNode[],
): Promise<Certificates> {
  const { config, world, database, box } = appliance
  const { tls, hostname } = config
  const certificate = await openTlsCertificate({ cert: tls.cert, key: tls.key, hostname }, world.clock)
  const watch = watchCertificate({ ...world, certificate })
  const standing = () => certificateStanding(certificate, world.clock)
  const watchHere = (isRunningJobs: () => boolean) => watchOnOtherNodes(world.clock, watch, isRunningJobs)
  if (!tls.acme) {
    if (certificate.isSelfSigned && config.submission.requireTls)
      world.log.warn('certificate not configured', {
        keys: 'tls.cert, tls.key, tls.acme',
      })
    return {
      certificate,
      challenges: undefined,
      acme: undefined,
      jobs: [watch],
      follow: watchHere,
      standing,
      reload: () => certificate.reload(),
    }
  }
  const challenges = new Challenges(database, world.clock)
  const renewal = new Renewal({
    ...world,
    http: await openCaller(appliance),
    database,
    seal: box,
    challenges,
    certificate,
    directory: tls.acmeDirectory,
    challenge: tls.acmeChallenge,
    contact: tls.acmeContact,
    names: () => acmeNames(config, nodes()),
    ownNames: acmeNames(config),
  })
  await renewal.load()
  // By then the listeners are open, since jobs start last.
  const order: Job = {
    name: RENEWAL_JOB,
    schedule: '*/5 * * * *',
    isRunAtStart: true,
    run: stopping => renewal.run(stopping),
  }
  return {
    certificate,
    challenges,
    acme: renewal,
    jobs: [watch, order],
    follow(isRunningJobs) {
      const stops = [watchHere(isRunningJobs), followStored({ ...world, database, certificate, renewal })]
      return () => stops.forEach(stop => stop())
    },
    standing,
    reload: () => renewal.hasten(),
  }
}

async function openCaller({ config, world }: Pick<Appliance, 'config' | 'world'>) {
  const lookUp = openHostLookup(openResolver(config, world), world.systemLookup)
  const { acmeCa } = config.tls
  return openHttpClient(world.clock, {
    lookUp,
    ...(acmeCa === '' ? {} : { authorities: await readFile(acmeCa, 'utf8') }),
  })
}
