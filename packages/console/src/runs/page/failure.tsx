/** The error that an event tells: its class and message, its causes, its stack. */
import { failureLine, failureOf, type Failure } from '@tacho/contract/issues/failure.ts'
import type { Json } from '@tacho/contract/record/payload-reader.ts'
import { LongText } from '../../web/text/long-text.tsx'

interface Props {
  eventType: string
  label: string
  payload: Json
  /** What stands above says the error itself. */
  isSaid?: boolean
}

export function FailureDetails({ isSaid = false, ...event }: Props) {
  const failure = failureOf(event)
  if (failure === null) return null
  return (
    <div className="mt-2 flex flex-col gap-2 first:mt-0">
      <FailureSaid failure={failure} isSaid={isSaid} />
      <Stack stack={failure.stack} />
    </div>
  )
}

/** Its class and message, then its causes. */
export function FailureSaid({ failure, isSaid = false }: { failure: Failure; isSaid?: boolean }) {
  const line = failureLine(failure, null)
  return (
    <>
      {!isSaid && line !== '' && (
        <p className="rounded-lg bg-red-wash px-3 py-2 font-medium [overflow-wrap:anywhere] text-red">{line}</p>
      )}
      {failure.causes.length > 0 && (
        <section>
          <h3 className="text-xs font-medium text-soft">Causes, the nearest first</h3>
          <ol className="text-sm">
            {failure.causes.map((cause, index) => (
              <li key={index} className="[overflow-wrap:anywhere]">
                <bdi>{failureLine(cause, null)}</bdi>
              </li>
            ))}
          </ol>
        </section>
      )}
    </>
  )
}

export function Stack({ stack }: { stack: string | null }) {
  if (stack === null) return null
  return (
    <section>
      <h3 className="mb-0.5 text-xs font-medium text-soft">Stack</h3>
      <div className="overflow-x-auto rounded-lg border border-line bg-side p-3">
        <LongText text={stack} mono />
      </div>
    </section>
  )
}
