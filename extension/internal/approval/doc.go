// Package approval is what stands between an agent and what it wants to do: the class of a tool, and the yes that only a
// person can say. It decides and does no I/O: who reads the catalog, runs a step or stores an action is an adapter's
// business (packages pgtool and pgstore).
//
// An *action* is a plan of one to ten *steps* (a tool and its arguments) that waits for a person. How its status moves:
//
//	            confirm        every step ran            undo
//	pending ───────────────► done ──────────────────────────────► undone
//	   │                     stopped (a step failed, or was not ──► undone
//	   │                     permitted any more; those before it stand)
//	   │                     void (a tool or a policy is not what the preview was made with)
//	   ├── reject ─────────► rejected
//	   └── its time is over ► expired
//
// Nothing else moves it, and nothing moves it twice: a decision takes the row's lock first.
package approval
