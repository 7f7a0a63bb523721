// Another process on a file that tests share with it, or that tests kill while it writes.
//
// replica-writer write FILE    writes transactions without end, and says the number of each after it is committed
// replica-writer count FILE N  adds 1 to object 1's value N times
// replica-writer bootstrap FILE  does as "write" does with bootstraps, whose rows take the place of those before
// replica-writer fill FILE     writes as "write" does with a disk that is full after 512 KiB, says the error, and then one with room again
// replica-writer answer FILE   says "ready", and answers every object that appears with one whose key is 1,000 higher

import Dispatch
import SluiceCore
import SluiceReplica

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

let schema = Schema([
    ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "value", type: .int),
            Property(id: 3, name: "text", type: .string),
        ])
])

/// The value of an object; 0 when it is not there.
func value(_ id: Int64, _ store: RowStore) throws -> Int64 {
    guard let row = try store.row(type: 0, key: .int(id)), case .int(let value)? = row[1] else { return 0 }
    return value
}

func say(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    _ = write(1, bytes, bytes.count)
}

/// Each transaction gives the same number to the first 20 objects and makes one more; every seventh deletes some of those.
func writeWithoutEnd(_ replica: Replica) throws {
    var number = try value(0, replica.makeReader().store)
    say("\(number)")
    while true {
        number += 1
        let transaction = try replica.beginWrite()
        for id in 0..<20 {
            let text = String(repeating: "text \(number) ", count: 1 + Int(number % 30))
            try transaction.create(type: 0, key: .int(Int64(id)), values: ["value": .int(number), "text": .string(text)])
        }
        try transaction.create(type: 0, key: .int(100 + number), values: ["value": .int(number)])
        if number % 7 == 0 { for id in number - 6..<number { try transaction.delete(type: 0, key: .int(100 + id)) } }
        try transaction.commit()
        say("\(number)")
    }
}

/// Each bootstrap brings the first 20 objects with its number and one more; what the one before brought besides goes.
func bootstrapWithoutEnd(_ replica: Replica) async throws {
    var number = try value(0, replica.makeReader().store)
    say("\(number)")
    while true {
        number += 1
        let version = UInt64(number)
        try await replica.commit(isDurable: false) { parts throws(SluiceError) in try parts.server.beginBootstrap(version: version) }
        for first in stride(from: Int64(0), to: 20, by: 5) {
            var buffer = RowBuffer()
            let text = String(repeating: "text \(number) ", count: 1 + Int(number % 30))
            var rows = (first..<first + 5).map { buffer.append(Row([.int($0), .int(number), .string(text)])) }
            if first == 15 { rows.append(buffer.append(Row([.int(100 + number), .int(number), .string(text)]))) }
            try await replica.commit(isDurable: false) { [rows, buffer] parts throws(SluiceError) in
                try parts.server.staging.stage(type: 0, rows: rows, of: buffer)
            }
        }
        try await replica.commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.endBootstrap(version: version, lsn: LSN(rawValue: version), types: [0])
        }
        say("\(number)")
    }
}

func bootstrap(_ replica: Replica) -> Never {
    Task {  // Unstructured because: the program ends with it.
        do { try await bootstrapWithoutEnd(replica) } catch {
            say("\(error)")
            exit(1)
        }
    }
    dispatchMain()
}

/// A file that may not grow is as good as a full disk.
func limit(_ bytes: rlim_t) {
    var limits = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limits)
    limits.rlim_cur = min(bytes, limits.rlim_max)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limits)
}

func fill(_ replica: Replica) throws {
    signal(SIGXFSZ, SIG_IGN)
    limit(512 << 10)
    do { try writeWithoutEnd(replica) } catch {
        say("\(error)")
        limit(.max)
        try writeWithoutEnd(replica)
    }
}

func count(_ replica: Replica, _ times: Int) throws {
    for _ in 0..<times {
        let transaction = try replica.beginWrite()
        let next = try value(1, transaction.store) + 1
        try transaction.create(type: 0, key: .int(1), values: ["value": .int(next)])
        try transaction.commit()
    }
}

func answer(_ replica: Replica) throws -> Never {
    let queue = DispatchQueue(label: "answers")
    _ = replica.observeChanges { change in
        queue.async {
            do {
                for case .int(let key) in change.types[0]?.keys ?? [] where key < 1_000 {
                    let transaction = try replica.beginWrite()
                    try transaction.create(type: 0, key: .int(key + 1_000), values: ["value": .int(key)])
                    try transaction.commit()
                }
            } catch {
                say("\(error)")
                exit(1)
            }
        }
    }
    say("ready")
    dispatchMain()
}

let arguments = CommandLine.arguments
let replica = try Replica(path: arguments[2], schema: schema, isSynced: arguments[1] == "bootstrap")
switch arguments[1] {
case "write": try writeWithoutEnd(replica)
case "bootstrap": bootstrap(replica)
case "fill": try fill(replica)
case "count": try count(replica, Int(arguments[3]) ?? 0)
case "answer": try answer(replica)
default: exit(2)
}
