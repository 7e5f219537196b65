// Prints reed_solomon.json: parity of klauspost/reedsolomon, in both forms.
//
//	go mod init vectors && go get github.com/klauspost/reedsolomon@v1.14.2
//	go run reed_solomon.go > reed_solomon.json
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"

	"github.com/klauspost/reedsolomon"
)

type vector struct {
	Code        string `json:"code"`
	DataCount   int    `json:"data_count"`
	ParityCount int    `json:"parity_count"`
	ShardBytes  int    `json:"shard_bytes"`
	Sha256      string `json:"parity_sha256"`
}

func main() {
	var vectors []vector
	counts := [][3]int{
		{1, 1, 64}, {2, 1, 64}, {2, 2, 64}, {3, 3, 64}, {8, 1, 64}, {11, 2, 128},
		{16, 2, 64}, {17, 5, 64}, {24, 3, 64}, {64, 64, 64}, {100, 100, 64},
		{128, 128, 64}, {192, 24, 64}, {224, 28, 64},
	}
	for _, code := range []string{"classical", "leopard"} {
		for _, c := range counts {
			v := vector{Code: code, DataCount: c[0], ParityCount: c[1], ShardBytes: c[2]}
			coder, err := reedsolomon.New(
				c[0], c[1], reedsolomon.WithLeopardGF(code == "leopard"))
			check(err)
			shards := make([][]byte, c[0]+c[1])
			for i := range shards {
				shards[i] = make([]byte, c[2])
				for j := range shards[i] {
					if i < c[0] {
						shards[i][j] = byte(i*131 + j*31 + (i*j)%7)
					}
				}
			}
			check(coder.Encode(shards))
			digest := sha256.Sum256(bytes.Join(shards[c[0]:], nil))
			v.Sha256 = hex.EncodeToString(digest[:])
			vectors = append(vectors, v)
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	check(encoder.Encode(vectors))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
