#if !FUZZER
    import Foundation

    /// Times texts without the fuzzer's instrumentation: the worst that are known, then every file of the directories given. Ends with 1
    /// when a stage takes longer than it may.
    @main
    enum Timing {
        static func main() throws {
            print("µs of one core for 64 KiB of:", Stage.allCases.map(\.rawValue).joined(separator: " "))
            var isSlow = false
            for (name, text) in WorstCases.texts(bytes: 65_536) {
                let (least, slow) = times(text)
                let columns = Stage.allCases.map { least[$0].map { "\($0 / 1_000)" } ?? "-" }
                print(slow == nil ? "  ok" : "SLOW", name + ":", columns.joined(separator: " "))
                isSlow = isSlow || slow != nil
            }
            var files = 0
            for directory in CommandLine.arguments.dropFirst() {
                for file in try FileManager.default.contentsOfDirectory(atPath: directory).sorted() {
                    guard let bytes = FileManager.default.contents(atPath: directory + "/" + file) else { continue }
                    files += 1
                    guard case let (least, slow?) = times(String(decoding: bytes, as: UTF8.self)) else { continue }
                    print("SLOW", file, slow, (least[slow] ?? 0) / 1_000, "µs for", bytes.count, "bytes")
                    isSlow = true
                }
            }
            print(files, "files, each as it should be in time and content")
            if isSlow { exit(1) }
        }
    }
#endif
