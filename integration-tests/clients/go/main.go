// SPDX-License-Identifier: Apache-2.0

// Go's gokrb5, asked as adapter.py's ProgramClient says: an order as JSON on stdin, an answer as
// JSON.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/spnego"
)

// The configuration of a renewal asks for tickets of six seconds. gokrb5 renews when a sixth is
// left.
const waitForRenewal = 5200 * time.Millisecond

type order struct {
	Step, Realm, User, Password, Service, Keytab, Config, New string
}

type answer struct {
	OK    bool   `json:"ok"`
	Text  string `json:"text"`
	Token string `json:"token"`
}

func newClient(o order) (*client.Client, error) {
	conf, err := config.Load(o.Config)
	if err != nil {
		return nil, err
	}
	if o.Step != "keytab_login" {
		return client.NewWithPassword(o.User, o.Realm, o.Password, conf), nil
	}
	keys, err := keytab.Load(o.Keytab)
	if err != nil {
		return nil, err
	}
	return client.NewWithKeytab(o.User, o.Realm, keys, conf), nil
}

// serviceToken is the first token of GSS-API for the service.
func serviceToken(c *client.Client, service string) (string, error) {
	ticket, key, err := c.GetServiceTicket(service)
	if err != nil {
		return "", err
	}
	token, err := spnego.NewKRB5TokenAPREQ(c, ticket, key, nil, nil)
	if err != nil {
		return "", err
	}
	bytes, err := token.Marshal()
	return base64.StdEncoding.EncodeToString(bytes), err
}

func do(o order) (result answer, err error) {
	c, err := newClient(o)
	if err != nil {
		return result, err
	}
	defer c.Destroy()
	if err = c.Login(); err != nil {
		return result, err
	}
	switch o.Step {
	case "service_ticket":
		result.Token, err = serviceToken(c, o.Service)
	case "renew":
		time.Sleep(waitForRenewal)
		result.Token, err = serviceToken(c, o.Service)
	case "change_password":
		result.OK, err = c.ChangePasswd(o.New)
		return result, err
	}
	result.OK = err == nil
	return result, err
}

func main() {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		fmt.Fprintln(os.Stderr, "the order is no JSON:", err)
		os.Exit(2)
	}
	result, err := do(o)
	if err != nil {
		result.OK, result.Text = false, err.Error()
	}
	line, _ := json.Marshal(result)
	fmt.Println(string(line))
}
