import TestSupport

#if canImport(Glibc)
    import Glibc
#endif

/// A broker that answers the requests for versions, for the cluster and for access lists, and ends with the test.
struct AccessListBroker {
    /// The entries of one resource, by the numbers of Kafka's protocol.
    struct Resource: Sendable {
        /// 2 for a topic, 4 for the cluster.
        var kind: UInt8
        var name: String
        /// 3 for a name, 4 for the beginning of names.
        var pattern: UInt8 = 3
        var entries: [(principal: String, host: String, operation: UInt8, permission: UInt8)]
    }

    private let listener: LocalListener
    var port: Int { listener.port }

    /// - Parameter error: The number of the error with which requests for access lists end; 0 for none.
    init(error: Int16 = 0, _ resources: [Resource] = []) throws {
        listener = try LocalListener()
        let answers = Answers(port: listener.port, error: error, resources: resources)
        listener.serve { Self.serve($0, answers) }
    }

    func close() { listener.end() }

    private static func serve(_ connection: Int32, _ answers: Answers) {
        while let head = bytes(4, connection), let request = bytes(head.reduce(0) { $0 << 8 | Int($1) }, connection) {
            guard let answer = answers.answer(request) else { return }
            var frame: [UInt8] = []
            frame.add(Int32(answer.count))
            frame += answer
            guard send(connection, frame, frame.count, Int32(MSG_NOSIGNAL)) == frame.count else { return }
        }
    }

    private static func bytes(_ count: Int, _ connection: Int32) -> [UInt8]? {
        guard (1...65_536).contains(count) else { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        return recv(connection, &bytes, count, Int32(MSG_WAITALL)) == count ? bytes : nil
    }
}

/// The answers of the broker, without their lengths.
private struct Answers: Sendable {
    let port: Int
    let error: Int16
    let resources: [AccessListBroker.Resource]

    /// Returns the answer to a request; nil for one of another kind.
    func answer(_ request: [UInt8]) -> [UInt8]? {
        guard request.count > 10 else { return nil }
        let (kind, version) = (request[1], request[3])
        // The number of the request.
        var answer = Array(request[4..<8])
        switch kind {
        case 3: addCluster(to: &answer)
        case 18: addVersions(to: &answer, isFlexible: version >= 3)
        case 29: addLists(of: request[10 + (Int(request[8]) << 8 | Int(request[9]))], to: &answer)
        default: return nil
        }
        return answer
    }

    /// The first and last versions of the requests that are answered.
    private static let versions: [(kind: Int16, last: Int16)] = [(3, 1), (18, 3), (29, 1)]

    private func addVersions(to answer: inout [UInt8], isFlexible: Bool) {
        answer.add(Int16(0))
        if isFlexible { answer.append(UInt8(Self.versions.count + 1)) } else { answer.add(Int32(Self.versions.count)) }
        for (kind, last) in Self.versions {
            for number in [kind, kind == 29 ? 1 : 0, last] { answer.add(number) }
            if isFlexible { answer.append(0) }
        }
        if isFlexible {
            answer.add(Int32(0))
            answer.append(0)
        }
    }

    /// One broker, which is the controller, and no topic.
    private func addCluster(to answer: inout [UInt8]) {
        answer.add(Int32(1))
        answer.add(Int32(1))
        answer.add("127.0.0.1")
        answer.add(Int32(port))
        answer.add(Int16(-1))
        answer.add(Int32(1))
        answer.add(Int32(0))
    }

    private func addLists(of kind: UInt8, to answer: inout [UInt8]) {
        let found = resources.filter { $0.kind == kind }
        answer.add(Int32(0))
        answer.add(error)
        answer.add(Int16(-1))
        answer.add(Int32(found.count))
        for resource in found {
            answer.append(resource.kind)
            answer.add(resource.name)
            answer.append(resource.pattern)
            answer.add(Int32(resource.entries.count))
            for entry in resource.entries {
                answer.add(entry.principal)
                answer.add(entry.host)
                answer += [entry.operation, entry.permission]
            }
        }
    }
}

extension [UInt8] {
    fileprivate mutating func add(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
    }

    fileprivate mutating func add(_ text: String) {
        add(Int16(text.utf8.count))
        append(contentsOf: text.utf8)
    }
}
