import Foundation
import Logging
import SluiceCore
import SluiceEmbeddedLog
import SluiceKafka
import SluicePorts
import TestSupport
import Testing

/// What the pipeline may expect of a log, of whatever kind.
@Suite(.timeLimit(.minutes(5))) struct `Every log` {
    /// The kinds there are.
    enum Kind: String, CaseIterable, Sendable { case embedded, kafka }

    /// Runs a test on a log, with topic names that no other test has.
    private static func with(_ kind: Kind, _ body: (any MessageLog, @Sendable (String) -> String) async throws -> Void) async throws {
        let suffix = UUID().uuidString.prefix(13).lowercased()
        let name: @Sendable (String) -> String = { "\($0)-\(suffix)" }
        switch kind {
        case .embedded: try await body(EmbeddedLog(environment: SystemEnvironment()), name)
        case .kafka:
            let log = try KafkaLog(try realBroker(), logger: quiet)
            do { try await body(log, name) } catch {
                await log.close()
                throw error
            }
            await log.close()
        }
    }

    /// A record as it was read.
    private struct Record: Hashable {
        var partition: LogPartition
        var offset: Int64
        var value: [UInt8]
    }

    /// Reads until there are so many records, or nothing has come for ten seconds.
    private static func read(_ reader: any LogReader, _ count: Int) async throws -> (records: [Record], gaps: [LogPartition]) {
        var (records, gaps): ([Record], [LogPartition]) = ([], [])
        var fetch = LogFetch()
        while records.count < count {
            fetch = try await reader.next(fetch, milliseconds: 10_000)
            if fetch.entries.isEmpty, fetch.gaps.isEmpty { break }
            gaps += fetch.gaps
            records += fetch.entries.map { Record(partition: $0.partition, offset: $0.offset, value: Array(fetch.arena[$0.value])) }
        }
        return (records, gaps)
    }

    @Test(arguments: Kind.allCases) func `gives back the content type of each record, and none to those without`(kind: Kind) async throws {
        try await Self.with(kind) { log, name in
            let place = LogPartition(name("a"), 0)
            _ = try await log.prepare([TopicSpec(name: place.topic, partitions: 1)])
            for content in [RecordContent.protobuf, nil, .json] {
                var batch = LogBatch(topics: [place.topic], contentType: content)
                for value in UInt8(0)..<3 { batch.append(topic: 0, partition: 0, key: [value], value: [value, 7]) }
                #expect(try await log.place(batch).count == 3)
            }
            let reader = try await log.makeReader()
            try await reader.assign([place: 0])
            var (found, fetch): ([String], LogFetch) = ([], LogFetch())
            while found.count < 9 {
                fetch = try await reader.next(fetch, milliseconds: 10_000)
                if fetch.entries.isEmpty { break }
                for entry in fetch.entries {
                    #expect(fetch.arena[entry.value].count == 2)
                    found.append(String(decoding: fetch.arena[entry.contentType], as: UTF8.self))
                }
            }
            let expected = [RecordContent.protobuf.rawValue, "", RecordContent.json.rawValue].flatMap { Array(repeating: $0, count: 3) }
            #expect(found == expected)
            await reader.close()
        }
    }

    private static func batch(_ topic: String, _ values: Range<UInt8>, in partition: Int32 = 0) -> LogBatch {
        var batch = LogBatch(topics: [topic])
        for value in values { batch.append(topic: 0, partition: partition, key: [value], value: [value]) }
        return batch
    }

    @Test(arguments: Kind.allCases) func `makes the topics that are missing and leaves the others as they are`(kind: Kind) async throws {
        try await Self.with(kind) { log, name in
            let first = try await log.prepare([TopicSpec(name: name("a"), partitions: 3)])
            #expect(first == [3])
            let both = [TopicSpec(name: name("b"), partitions: 2), TopicSpec(name: name("a"), partitions: 5)]
            #expect(try await log.prepare(both) == [2, 3])
            let places = [LogPartition(name("a"), 2), LogPartition(name("b"), 1)]
            #expect(try await log.ends(of: places) == [places[0]: 0, places[1]: 0])
        }
    }

    @Test func `makes a topic again that was deleted meanwhile, and tells its readers of the gap`() async throws {
        try await Self.with(.kafka) { log, name in
            let place = LogPartition(name("a"), 1)
            _ = try await log.prepare([TopicSpec(name: place.topic, partitions: 2)])
            #expect(try await log.append(Self.batch(place.topic, 0..<10, in: 1)) == [place: 10])
            let reader = try await log.makeReader()
            try await reader.assign([place: 0])
            #expect(try await Self.read(reader, 10).records.count == 10)
            let admin = try KafkaAdmin(try realBroker())
            try await admin.delete([place.topic])
            #expect(try await log.ranges(of: [place]) == [place: 0..<0])
            #expect(try await admin.partitionCount(of: place.topic) == 2)
            await admin.close()
            let start = ContinuousClock.now
            // A producer that has yet to find out fails by name.
            while true {
                do {
                    _ = try await log.append(Self.batch(place.topic, 20..<23, in: 1))
                    break
                } catch let error as SluiceError where ContinuousClock.now - start < .seconds(60) {
                    try #require(error.code == .logTopic || error.code == .logDelivery, "\(error)")
                }
            }
            let found = try await Self.read(reader, 3)
            #expect(found.gaps == [place] && found.records.prefix(3).map(\.value) == [[20], [21], [22]])
            await reader.close()
        }
    }

    @Test(arguments: Kind.allCases) func `says where each record is, while others write beside it`(kind: Kind) async throws {
        try await Self.with(kind) { log, name in
            let topics = [name("a"), name("b")]
            _ = try await log.prepare(topics.map { TopicSpec(name: $0, partitions: 2) })
            let places = try await withThrowingTaskGroup(of: [Record].self) { group in
                for writer in UInt8(0)..<4 {
                    group.addTask {
                        var random = SplitMix64(seed: UInt64(writer))
                        var batch = LogBatch(topics: topics)
                        for number in UInt8(0)..<100 {
                            batch.append(
                                topic: Int(random.next() % 2), partition: Int32(random.next() % 2), key: [0], value: [writer, number])
                        }
                        let offsets = try await log.place(batch)
                        return zip(batch.entries, offsets).map {
                            Record(
                                partition: LogPartition(topics[Int($0.topic)], $0.partition), offset: $1,
                                value: Array(batch.arena[$0.value]))
                        }
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            let reader = try await log.makeReader()
            try await reader.assign(
                Dictionary(uniqueKeysWithValues: topics.flatMap { [LogPartition($0, 0), LogPartition($0, 1)] }.map { ($0, 0) }))
            let found = try await Self.read(reader, places.count)
            #expect(Set(found.records) == Set(places))
            await reader.close()
        }
    }

    @Test(arguments: Kind.allCases) func `gives back every byte, in the order of each partition`(kind: Kind) async throws {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        try await Self.with(kind) { log, name in
            let topics = [name("a"), name("b")]
            _ = try await log.prepare(topics.map { TopicSpec(name: $0, partitions: 2) })
            var written: [LogPartition: [[UInt8]]] = [:]
            for _ in 0..<3 {
                var batch = LogBatch(topics: topics)
                for _ in 0..<200 {
                    let place = LogPartition(topics[Int.random(in: 0...1, using: &random)], Int32.random(in: 0...1, using: &random))
                    let value = (0..<Int.random(in: 0...600, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
                    written[place, default: []].append(value)
                    batch.append(topic: topics.firstIndex(of: place.topic) ?? 0, partition: place.partition, key: [1, 2], value: value)
                }
                let ends = try await log.append(batch)
                #expect(ends == written.mapValues { Int64($0.count) }, "seed \(seed)")
            }
            let ends = try await log.ends(of: Array(written.keys))
            #expect(ends == written.mapValues { Int64($0.count) }, "seed \(seed)")
            let reader = try await log.makeReader()
            try await reader.assign(written.mapValues { _ in 0 })
            let read = try await Self.read(reader, 600)
            #expect(read.gaps.isEmpty)
            for (place, values) in written {
                let records = read.records.filter { $0.partition == place }
                #expect(records.map(\.offset) == Array(0..<Int64(values.count)), "seed \(seed)")
                #expect(records.map(\.value) == values, "seed \(seed)")
            }
            await reader.close()
        }
    }

    @Test(arguments: Kind.allCases) func `reads from the offset asked, what is assigned later too, and nothing that is taken away`(
        kind: Kind
    ) async throws {
        try await Self.with(kind) { log, name in
            let topic = name("t")
            _ = try await log.prepare([TopicSpec(name: topic, partitions: 2)])
            for partition in 0..<2 as Range<Int32> { _ = try await log.append(Self.batch(topic, 0..<10, in: partition)) }
            let reader = try await log.makeReader()
            try await reader.assign([LogPartition(topic, 0): 7])
            #expect(try await Self.read(reader, 3).records.map(\.value) == [[7], [8], [9]])
            try await reader.assign([LogPartition(topic, 1): 9])
            #expect(try await Self.read(reader, 1).records == [Record(partition: LogPartition(topic, 1), offset: 9, value: [9])])
            try await reader.unassign([LogPartition(topic, 1)])
            _ = try await log.append(Self.batch(topic, 10..<20, in: 1))
            _ = try await log.append(Self.batch(topic, 10..<12, in: 0))
            #expect(try await Self.read(reader, 2).records.map(\.partition.partition) == [0, 0])
            // Back again, from before: what was read is read anew.
            try await reader.assign([LogPartition(topic, 1): 9])
            #expect(try await Self.read(reader, 11).records.map(\.offset) == Array(9..<20))
            await reader.close()
        }
    }

    @Test(arguments: Kind.allCases) func `serves several readers, each for itself`(kind: Kind) async throws {
        try await Self.with(kind) { log, name in
            let place = LogPartition(name("t"), 0)
            _ = try await log.prepare([TopicSpec(name: place.topic, partitions: 1)])
            _ = try await log.append(Self.batch(place.topic, 0..<5))
            let (first, second) = (try await log.makeReader(), try await log.makeReader())
            try await first.assign([place: 0])
            try await second.assign([place: 3])
            #expect(try await Self.read(first, 5).records.count == 5)
            #expect(try await Self.read(second, 2).records.map(\.offset) == [3, 4])
            await first.close()
            _ = try await log.append(Self.batch(place.topic, 5..<6))
            #expect(try await Self.read(second, 1).records.map(\.offset) == [5])
            await second.close()
        }
    }

    @Test(arguments: Kind.allCases) func `wakes a reader that waits, and lets one go whose time is over or whose task is cancelled`(
        kind: Kind
    ) async throws {
        try await Self.with(kind) { log, name in
            let place = LogPartition(name("t"), 0)
            _ = try await log.prepare([TopicSpec(name: place.topic, partitions: 1)])
            let reader = try await log.makeReader()
            try await reader.assign([place: 0])
            #expect(try await reader.next(LogFetch(), milliseconds: 1).entries.isEmpty)
            async let records = Self.read(reader, 1).records
            _ = try await log.append(Self.batch(place.topic, 4..<5))
            #expect(try await records == [Record(partition: place, offset: 0, value: [4])])
            let start = ContinuousClock.now
            let isEmpty = await withTaskGroup(of: Bool.self) { group in
                group.addTask { ((try? await reader.next(LogFetch(), milliseconds: 60_000))?.entries ?? []).isEmpty }
                group.cancelAll()
                return await group.next() ?? false
            }
            #expect(isEmpty && ContinuousClock.now - start < .seconds(30))
            await reader.close()
        }
    }

    @Test(arguments: Kind.allCases) func `tells of an offset that it does not have and goes on with the oldest record`(
        kind: Kind
    ) async throws {
        try await Self.with(kind) { log, name in
            let topic = name("t")
            _ = try await log.prepare([TopicSpec(name: topic, partitions: 2)])
            for partition in 0..<2 as Range<Int32> { _ = try await log.append(Self.batch(topic, 0..<4, in: partition)) }
            let reader = try await log.makeReader()
            try await reader.assign([LogPartition(topic, 0): 1_000, LogPartition(topic, 1): 2])
            let read = try await Self.read(reader, 6)
            #expect(read.gaps == [LogPartition(topic, 0)])
            #expect(read.records.filter { $0.partition.partition == 0 }.map(\.offset) == [0, 1, 2, 3])
            #expect(read.records.filter { $0.partition.partition == 1 }.map(\.offset) == [2, 3])
            // One gap is told once.
            _ = try await log.append(Self.batch(topic, 4..<5, in: 0))
            let next = try await Self.read(reader, 1)
            #expect(next.gaps.isEmpty && next.records.map(\.offset) == [4])
            await reader.close()
        }
    }

    @Test(arguments: Kind.allCases) func `refuses a partition that is not there, by name`(kind: Kind) async throws {
        try await Self.with(kind) { log, name in
            let topic = name("t")
            _ = try await log.prepare([TopicSpec(name: topic, partitions: 1)])
            let error = await #expect(throws: SluiceError.self) { try await log.append(Self.batch(topic, 0..<1, in: 1)) }
            #expect(error?.code == .logTopic && error?.message.contains(topic) == true, "\(String(describing: error))")
            let ends = try await log.append(Self.batch(topic, 0..<1))
            #expect(ends == [LogPartition(topic, 0): 1])
        }
    }
}
