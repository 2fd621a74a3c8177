import type { FormEvent, ReactNode } from 'react'
import { Logo } from './logo.tsx'

/** A narrow column in the middle, for people who are not in yet. */
export function Panel({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className="mx-auto flex min-h-dvh w-full max-w-sm flex-col justify-center gap-6 px-5 pt-8 pb-24">
      <div>
        <Logo className="size-9" />
        <h1 className="mt-4 text-xl font-semibold">{title}</h1>
      </div>
      {children}
    </main>
  )
}

/** The values of a form that is submitted. */
export function fieldsOf(event: FormEvent<HTMLFormElement>): Record<string, string> {
  event.preventDefault()
  const values = [...new FormData(event.currentTarget)].map(([name, value]) => [
    name,
    typeof value === 'string' ? value : '',
  ])
  return Object.fromEntries(values) as Record<string, string>
}

export function Problem({ children }: { children: string | null }) {
  return (
    <p role="alert" className="text-sm text-red empty:hidden">
      {children}
    </p>
  )
}
