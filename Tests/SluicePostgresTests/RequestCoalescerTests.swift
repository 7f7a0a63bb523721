import SluiceCore
import Synchronization
import TestSupport
import Testing

@testable import SluicePostgres

@Suite struct `Questions that are asked together` {
    private typealias Machine = GathererStateMachine<Int, String, String>

    private let start = ContinuousClock.now
    private let patience = Duration.seconds(10)

    /// Has somebody ask the question of their number. - Returns: the questions of the run that begins.
    private func ask(_ machine: inout Machine, _ id: UInt64, at second: Int = 0) -> [Int]? {
        let now = start + .seconds(second)
        guard case .begins(let run) = machine.ask(id, Int(id), "asker \(id)", now: now) else { return nil }
        return run.questions
    }

    @Test func `are answered at once while there is room for a run, and then together`() {
        var machine = Machine(width: 2, most: 3, patience: patience)
        #expect(ask(&machine, 1) == [1])
        #expect(ask(&machine, 2) == [2])
        for id in 3...7 {
            let begun = ask(&machine, UInt64(id))
            #expect(begun == nil)
        }
        #expect(machine.waiting == 5)
        let first = machine.end(1, after: .zero, now: start)
        #expect(first.waiters == ["asker 1"] && first.next?.questions == [3, 4, 5])
        let second = machine.end(2, after: .zero, now: start)
        #expect(second.waiters == ["asker 2"] && second.next?.questions == [6, 7])
        let third = machine.end(3, after: .zero, now: start)
        #expect(third.waiters == ["asker 3", "asker 4", "asker 5"] && third.next == nil)
        #expect(machine.waiting == 0)
    }

    @Test func `gather beside a run, but not for long`() {
        func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }
        func ask(_ machine: inout Machine, _ id: UInt64, at time: Int) -> (begins: [Int]?, wake: ContinuousClock.Instant?) {
            switch machine.ask(id, Int(id), "asker \(id)", now: at(time)) {
            case .begins(let run): (run.questions, nil)
            case .waits(let wake): (nil, wake)
            case .cancelled: (nil, nil)
            }
        }
        var machine = Machine(width: 2, most: 8, gathering: .milliseconds(5), patience: patience)
        let asked = [ask(&machine, 1, at: 0), ask(&machine, 2, at: 1), ask(&machine, 3, at: 2)]
        #expect(asked.map(\.begins) == [[1], nil, nil])
        #expect(asked.map(\.wake) == [nil, at(6), nil], "one call is due")
        // The usual case: the run ends first, and they follow it together.
        let first = machine.end(1, after: .zero, now: at(3))
        #expect(first.next?.questions == [2, 3] && first.wake == nil)
        let fourth = ask(&machine, 4, at: 4)
        #expect(fourth == (nil, nil))
        let early = machine.wake(now: at(6))
        #expect(early.run == nil && early.next == at(9))
        // A slow run delays them no longer.
        let late = machine.wake(now: at(9))
        #expect(late.run?.questions == [4] && late.next == nil)
        // Both runs are active: the next one to end is followed.
        let fifth = ask(&machine, 5, at: 10)
        #expect(fifth == (nil, nil))
        let third = machine.end(3, after: .zero, now: at(12))
        #expect(third.next == nil && third.wake == at(15))
        let last = machine.end(2, after: .zero, now: at(13))
        #expect(last.next?.questions == [5] && last.wake == nil)
        let idle = machine.wake(now: at(15))
        #expect(idle.run == nil && idle.next == nil)
    }

    @Test func `are not asked when whoever asked has given up in line, or before`() {
        var machine = Machine(width: 1, most: 8, patience: patience)
        #expect(ask(&machine, 1) == [1])
        #expect(ask(&machine, 2) == nil)
        #expect(ask(&machine, 3) == nil)
        let gone = machine.cancel(2)
        #expect(gone.waiter == "asker 2" && gone.worker == nil)
        #expect(machine.cancel(4) == (nil, nil))
        guard case .cancelled = machine.ask(4, 4, "asker 4", now: start) else {
            Issue.record("somebody who had given up waits")
            return
        }
        #expect(machine.end(1, after: .zero, now: start).next?.questions == [3])
        // Who has an answer gives up nothing.
        #expect(machine.cancel(1) == (nil, nil))
        machine.forget(1)
    }

    @Test func `stop a run that all of its askers have given up, and no other`() {
        var machine = Machine(width: 1, most: 8, patience: patience)
        for id in 1...3 { _ = ask(&machine, UInt64(id)) }
        let isFirstGivenUp = machine.began(1, by: "first")
        #expect(!isFirstGivenUp)
        #expect(machine.end(1, after: .zero, now: start).next?.questions == [2, 3])
        let isSecondGivenUp = machine.began(2, by: "second")
        #expect(!isSecondGivenUp)
        #expect(machine.cancel(2) == ("asker 2", nil))
        #expect(machine.cancel(3) == ("asker 3", "second"))
        #expect(machine.end(2, after: .zero, now: start).waiters == [nil, nil])
        // They may do so before anybody works on it.
        _ = ask(&machine, 4)
        #expect(machine.cancel(4) == ("asker 4", nil))
        let isThirdGivenUp = machine.began(3, by: "third")
        #expect(isThirdGivenUp)
    }

    @Test func `get no answer when they have been in line for too long`() {
        var machine = Machine(width: 1, most: 8, patience: patience)
        _ = ask(&machine, 1)
        for (id, second) in [(2, 1), (3, 4), (4, 6)] { _ = ask(&machine, UInt64(id), at: second) }
        let end = machine.end(1, after: .zero, now: start + .seconds(14))
        #expect(end.waiters == ["asker 1"] && end.late == ["asker 2", "asker 3"] && end.next?.questions == [4])
        // Who is being answered is not late.
        let last = machine.end(2, after: .zero, now: start + .seconds(60))
        #expect(last.waiters == ["asker 4"] && last.late.isEmpty && last.next == nil)
    }

    @Test func `are fewer in a run as long as runs are slow`() {
        var machine = Machine(width: 1, most: 16, patience: patience)
        var shares: [Int] = []
        for number in 1...8 {
            _ = ask(&machine, UInt64(number))
            _ = machine.end(UInt64(number), after: number <= 5 ? Machine.slow * 2 : .zero, now: start)
            shares.append(machine.share)
        }
        #expect(shares == [8, 4, 2, 1, 1, 2, 4, 8])
    }

    /// Answers a number with three times as much.
    private final class Asked: Sendable {
        let numbers = Mutex<[Int]>([])

        func answer(_ asked: [Int]) async -> Gathered<Int> {
            numbers.withLock { $0 += asked }
            // Some runs are longer than the time of gathering.
            if asked.contains(where: { $0 % 16 == 0 }) { try? await Task.sleep(for: .milliseconds(3)) } else { await Task.yield() }
            return Gathered(answers: asked.map { .success($0 * 3) })
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [Duration.zero, .milliseconds(1)])
    func `get their own answers, whoever else gives up`(gathering: Duration) async throws {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SplitMix64(seed: seed)
        let gatherer = RequestCoalescer<Int, Int>(width: 2, most: 7, gathering: gathering)
        let asked = Asked()
        // Unstructured because: they are cancelled one by one.
        let tasks = (0..<1_000).map { number in Task { try await gatherer.ask(number) { await asked.answer($0) } } }
        let cancelled = Set((0..<300).map { _ in Int.random(in: 0..<1_000, using: &generator) })
        for number in cancelled {
            if Bool.random(using: &generator) { await Task.yield() }
            tasks[number].cancel()
        }
        for (number, task) in tasks.enumerated() {
            switch await task.result {
            case .success(let answer): #expect(answer == number * 3, "seed \(seed)")
            case .failure(let error): #expect(error is CancellationError && cancelled.contains(number), "seed \(seed)")
            }
        }
        let all = asked.numbers.withLock { $0 }
        #expect(Set(all).count == all.count && Set(all).isSuperset(of: Set(0..<1_000).subtracting(cancelled)), "seed \(seed)")
        #expect(gatherer.waiting == 0, "seed \(seed)")
    }
}

@Suite struct `Statements that are shared` {
    private typealias Answer = Result<String?, any Error>

    /// Has each statement asked for while the pool's connection is lent, so that all but the first two are run together.
    private static func ask(_ statements: [PostgresStatement], _ pool: PostgresPool) async throws -> [Answer] {
        let tasks = try await pool.withConnection { _ in
            // Unstructured because: they outlive the loan that they wait for.
            let first = (0..<2).map { _ in Task { await answer(PostgresStatement("SELECT 0"), pool) } }
            while pool.waiting < 2 { await Task.yield() }
            var tasks: [Task<Answer, Never>] = []
            for statement in statements {
                tasks.append(Task { await answer(statement, pool) })  // Unstructured because: see above.
                while pool.shared.waiting < tasks.count { await Task.yield() }
            }
            return first + tasks
        }
        var answers: [Answer] = []
        for task in tasks { answers.append(await task.value) }
        return Array(answers.dropFirst(2))
    }

    private static func answer(_ statement: PostgresStatement, _ pool: PostgresPool) async -> Answer {
        do { return .success(try await pool.share(statement)[0, 0]) } catch { return .failure(error) }
    }

    private static func insert(_ number: Int, _ name: String) -> PostgresStatement {
        PostgresStatement("INSERT INTO numbers VALUES ($1, $2) RETURNING a", [.int(number), .text(name)])
    }

    @Test func `have their own answers and one commit`() async throws {
        try await TestPostgres.withDatabase { conninfo in
            let pool = PostgresPool(conninfo, size: 1)
            _ = try await pool.withConnection { try await $0.script("CREATE TABLE numbers (a int PRIMARY KEY, name text)") }
            // One run ends before these begin. Even if it was slow, the next one has room for half as many as the pool's most, 64.
            let answers = try await Self.ask((0..<30).map { Self.insert($0, "n") }, pool)
            #expect(try answers.map { try $0.get() } == (0..<30).map { "\($0)" })
            let commits = try await pool.share(PostgresStatement("SELECT count(DISTINCT xmin::text) FROM numbers"))
            #expect(commits.int(0, 0) == 1)
            await pool.close()
        }
    }

    @Test func `are refused one by one`() async throws {
        try await TestPostgres.withDatabase { conninfo in
            let pool = PostgresPool(conninfo, size: 1)
            _ = try await pool.withConnection { try await $0.script("CREATE TABLE numbers (a int PRIMARY KEY, name text)") }
            var statements = (0..<20).map { Self.insert($0, "n") }
            statements[3] = Self.insert(3, "a NUL: \0")
            statements[7] = Self.insert(6, "twice")
            statements[11] = PostgresStatement("SELECT a FROM elsewhere")
            let answers = try await Self.ask(statements, pool)
            for (number, answer) in answers.enumerated() {
                switch answer {
                case .success(let text): #expect(text == "\(number)")
                case .failure(let error):
                    let codes: [Int: ErrorCode] = [3: .badRequest, 7: .postgresStatement, 11: .postgresStatement]
                    #expect((error as? SluiceError)?.code == codes[number], "\(number): \(error)")
                }
            }
            #expect(try await pool.share(PostgresStatement("SELECT count(*) FROM numbers")).int(0, 0) == 17)
            await pool.close()
        }
    }

    @Test func `fail together when the connection does`() async throws {
        try await TestPostgres.withDatabase { conninfo in
            let pool = PostgresPool(conninfo, size: 1)
            let statements =
                [PostgresStatement("SELECT pg_terminate_backend(pg_backend_pid())")] + (0..<5).map { PostgresStatement("SELECT \($0)") }
            let answers = try await Self.ask(statements, pool)
            for answer in answers {
                #expect(throws: SluiceError.self) { try answer.get() }
            }
            #expect(try await pool.share(PostgresStatement("SELECT 1")).int(0, 0) == 1)
            await pool.close()
        }
    }
}
