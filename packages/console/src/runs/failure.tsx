/** The error that an event tells: its class and message, its causes, its stack. */
import { failureLine, failureOf } from '@tacho/contract/failure.ts'
import type { Json } from '@tacho/contract/read-payload.ts'
import { LongText } from '../ui/long-text.tsx'

interface Props {
  eventType: string
  label: string
  payload: Json
  /** What stands above says the error itself. */
  isSaid?: boolean
}

export function FailureDetails({ eventType, label, payload, isSaid = false }: Props) {
  const failure = failureOf({ eventType, label, payload })
  if (failure === null) return null
  const line = failureLine(failure, null)
  return (
    <div className="mt-2 flex flex-col gap-2 first:mt-0">
      {!isSaid && line !== '' && <p className="rounded-lg bg-red-wash px-3 py-2 font-medium text-red">{line}</p>}
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
      {failure.stack !== null && (
        <section>
          <h3 className="mb-0.5 text-xs font-medium text-soft">Stack</h3>
          <div className="overflow-x-auto rounded-lg border border-line bg-side p-3">
            <LongText text={failure.stack} mono />
          </div>
        </section>
      )}
    </div>
  )
}
