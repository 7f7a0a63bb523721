/// Checks histories of registers for causal consistency and atomicity, and that the end has everything.
///
/// A transaction comes after those that its client committed before it, after those whose values it read, and after what those come
/// after (Ahamad and others, "Causal memory", 1995). Two that come after none of each other may win in any order. Then:
/// - what a transaction reads of a register was not overwritten by anything that it comes after: so nobody sees a part of a
///   transaction, misses own writes, or goes back;
/// - in the end a register has the value of a transaction that no other one that wrote it comes after: nothing is lost.
struct CausalCheck {
    private let clients: [[RegisterTransaction]]
    /// The transaction of a value.
    private var writers: [Int: (client: Int, index: Int)] = [:]
    /// Of each transaction: how many transactions of each client it comes after, with itself.
    private var clocks: [[[Int]]]
    /// Of each client and register: the indexes of the transactions that wrote it.
    private var writes: [[[Int]]] = []
    private(set) var problems: [String] = []

    /// - Parameters:
    ///   - histories: of each client, in order.
    ///   - final: the registers in the end.
    static func problems(_ histories: [[RegisterTransaction]], final: [Int]) -> [String] {
        var check = CausalCheck(histories, final)
        check.order()
        if check.problems.isEmpty { check.checkFinal(final) }
        return check.problems
    }

    private init(_ histories: [[RegisterTransaction]], _ final: [Int]) {
        // Of what a killed process did not finish only that counts which somebody has seen.
        var seen = Set(final)
        for history in histories { for transaction in history { seen.formUnion(transaction.reads) } }
        clients = histories.map { $0.filter { $0.isCommitted || seen.contains($0.value) } }
        clocks = clients.map { _ in [] }
        writes = clients.map { transactions in
            var lists = [[Int]](repeating: [], count: final.count)
            for (index, transaction) in transactions.enumerated() { for key in transaction.writes { lists[key].append(index) } }
            return lists
        }
        for (client, transactions) in clients.enumerated() {
            for (index, transaction) in transactions.enumerated() { writers[transaction.value] = (client, index) }
        }
    }

    /// Gives every transaction its clock, those first that come after none that has none.
    private mutating func order() {
        var hasMoved = true
        while hasMoved {
            hasMoved = false
            for client in clients.indices {
                while clocks[client].count < clients[client].count, let clock = clock(client, clocks[client].count) {
                    let index = clocks[client].count
                    check(clients[client][index], after: clock)
                    var own = clock
                    own[client] = index + 1
                    clocks[client].append(own)
                    hasMoved = true
                }
            }
        }
        for client in clients.indices where clocks[client].count < clients[client].count {
            let transaction = clients[client][clocks[client].count]
            problems.append("client \(client)'s transaction \(transaction.number) read a value that nobody wrote, or that came after it")
        }
    }

    /// What a transaction comes after; nil while something of it has no clock.
    private mutating func clock(_ client: Int, _ index: Int) -> [Int]? {
        var clock = index > 0 ? clocks[client][index - 1] : [Int](repeating: 0, count: clients.count)
        for value in Set(clients[client][index].reads) where value != 0 {
            guard let writer = writers[value], writer.index < clocks[writer.client].count else { return nil }
            for (other, count) in clocks[writer.client][writer.index].enumerated() where count > clock[other] { clock[other] = count }
        }
        return clock
    }

    private mutating func check(_ transaction: RegisterTransaction, after clock: [Int]) {
        for (key, value) in transaction.reads.enumerated() {
            guard let newer = overwriter(of: value, key, within: clock) else { continue }
            problems.append(
                "client \(transaction.client)'s transaction \(transaction.number) read \(value) of register \(key), which \(newer) "
                    + "had overwritten, and it comes after that")
        }
    }

    private mutating func checkFinal(_ final: [Int]) {
        let all = clients.map(\.count)
        for (key, value) in final.enumerated() {
            if value != 0, writers[value] == nil { problems.append("register \(key) has \(value) in the end, which nobody wrote") }
            if let newer = overwriter(of: value, key, within: all) {
                problems.append("register \(key) has \(value) in the end, though \(newer) overwrote it")
            }
        }
    }

    /// A transaction among those of the clock that wrote the register and comes after the writer of the value. The last one of each
    /// client is enough: what one comes after, its client's later ones come after too.
    private func overwriter(of value: Int, _ key: Int, within clock: [Int]) -> String? {
        let writer = value == 0 ? nil : writers[value]
        for client in clients.indices {
            guard let last = lastIndex(writes[client][key], below: clock[client]) else { continue }
            if let writer {
                if writer == (client, last) || clocks[client][last][writer.client] <= writer.index { continue }
            }
            return "client \(client)'s transaction \(clients[client][last].number) (\(clients[client][last].value))"
        }
        return nil
    }

    private func lastIndex(_ indexes: [Int], below bound: Int) -> Int? {
        var (low, high) = (0, indexes.count)
        while low < high {
            let middle = (low + high) / 2
            if indexes[middle] < bound { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : indexes[low - 1]
    }
}
