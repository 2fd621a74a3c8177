import type { FormEvent, ReactNode } from 'react'

/** A narrow column in the middle of the page, for people who are not signed in. */
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

/** The logo: a tachometer. */
export function Logo({ className = 'size-5' }: { className?: string }) {
  return (
    <svg
      viewBox="0 0 32 32"
      fill="none"
      stroke="currentColor"
      strokeWidth="3"
      strokeLinecap="round"
      aria-hidden
      className={`text-accent ${className}`}
    >
      <circle cx="16" cy="16" r="12.5" />
      <path d="M16 16 22 9" />
      <circle cx="16" cy="16" r="2.5" fill="currentColor" stroke="none" />
    </svg>
  )
}
